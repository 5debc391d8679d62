"""The network around the boards: processes on the rack's host, certificates, broker, access point."""
