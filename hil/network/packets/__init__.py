"""What a capture says: a TCP connection's segments, iperf's datagrams, bytes of overhead."""
