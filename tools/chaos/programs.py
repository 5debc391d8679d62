# SPDX-License-Identifier: Apache-2.0
"""What runs beside the rack's own parts, in its network: neighbours, impostors, flooders.

Programs in Python. Each says when it has begun; its first argument is an address.
"""

BLAST = """
import socket, sys, time
to = (sys.argv[1], 9)
send = socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto
print("begun", flush=True)
until = time.monotonic() + 30
while time.monotonic() < until:
    for _ in range(5):
        send(bytes(1400), to)
    time.sleep(0.001)
"""
CAPTIVE = """
import socket, sys
server = socket.create_server((sys.argv[1], 8099))
print("begun", flush=True)
while True:
    with server.accept()[0] as connection:
        connection.recv(4096)
        connection.sendall(b"HTTP/1.1 302 Found\\r\\nLocation: http://portal.example/\\r\\n\\r\\n")
"""
# a client of the broker's that does what {body} says, again and again
CLIENT = """
import socket, sys, time
sys.path.insert(0, {root!r})
from hil.network import mqtt_packets as mqtt
host = sys.argv[1]
print("begun", flush=True)
until = time.monotonic() + 20
while time.monotonic() < until:
    try:
        {body}
    except (OSError, EOFError):
        pass
    time.sleep(0.2)
"""
# connections that are begun and never finished, from addresses that nobody has
HALF_OPEN = """
import socket, struct, sys, time
host = socket.inet_aton(sys.argv[1])
def checksum(data):
    total = sum(struct.unpack(f"!{len(data) // 2}H", data))
    total = (total & 0xffff) + (total >> 16)
    return ~(total + (total >> 16)) & 0xffff
def syn(source, port):
    tcp = struct.pack("!HHIIBBHHH", port, 1883, 1, 0, 5 << 4, 2, 5760, 0, 0)
    whole = source + host + struct.pack("!BBH", 0, 6, 20) + tcp
    tcp = tcp[:16] + struct.pack("!H", checksum(whole)) + tcp[18:]
    return struct.pack("!BBHHHBBH", 0x45, 0, 40, 0, 0, 64, 6, 0) + source + host + tcp
sender = socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_RAW)
print("begun", flush=True)
for number in range(2000):
    sender.sendto(syn(socket.inet_aton(f"10.77.0.{200 + number % 40}"), 2000 + number), (sys.argv[1], 0))
    time.sleep(0.01)
"""
# one that takes its time for each connection, and then passes on what comes
SLOW = """
import socket, sys, threading, time
def pass_on(one, other):
    while data := one.recv(65536):
        other.sendall(data)
    other.shutdown(socket.SHUT_WR)
server = socket.create_server((sys.argv[1], 8099))
print("begun", flush=True)
while True:
    time.sleep(0.4)
    near = server.accept()[0]
    far = socket.create_connection((sys.argv[1], 1883))
    for each in (near, far):
        each.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    for pair in ((near, far), (far, near)):
        threading.Thread(target=pass_on, args=pair, daemon=True).start()
"""
# one that answers on a port
PEER = """
import socket, sys
server = socket.create_server((sys.argv[1], {port}))
print("begun", flush=True)
held = []
while True:
    connection = server.accept()[0]
    held += [connection]
    {answer}
"""
GARBAGE = PEER.format(port=8099, answer="connection.sendall(bytes(range(256)) * 20)")
NOTHING = PEER.format(port=8099, answer="pass")
GOES = PEER.format(port=8099, answer="connection.close()")
IN_THE_WAY = PEER.format(port=1883, answer="pass")
