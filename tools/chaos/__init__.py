# SPDX-License-Identifier: Apache-2.0
"""The campaign that breaks the rack: `make chaos SEED=n`. Nothing of it is a fake; each fault is really made.

fault.py          what a fault is, and what may be said of it      ground.py    the rack that is broken
board.py air.py broker.py host.py inputs.py security.py            the faults, a family each
surroundings.py   what a run finds around it: the host's, too      programs.py  what runs beside its parts
trial.py          one fault during one run, and what came of it    table.py     rows, the table, the page
"""
