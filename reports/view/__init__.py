# SPDX-License-Identifier: Apache-2.0
"""What is said of judged runs, once: words with marks, lines and tables, and a renderer for each target.

Terminal, summary.md, comment, job summary and first page place it; none of them words anything anew.
"""
