#!/bin/sh
# Takes away what install.sh made for the rack $rack, but for users, $home and /var/lib/hil, which have records.
set -eu
[ "$$(id -u)" = 0 ] || { echo "uninstall.sh: this needs root: sudo sh uninstall.sh" >&2; exit 2; }
systemctl disable --now 'hil-runner@*.path' hil-helper.socket || true
systemctl stop 'hil-runner@*.service' || true
for unit in hil-runner@.service hil-runner@.path hil-helper.socket hil-helper@.service; do
    rm -f "/etc/systemd/system/$$unit"
done
rm -f /usr/local/lib/hil/hil-helper /etc/hil/helper.json /etc/udev/rules.d/70-hil.rules
systemctl daemon-reload
udevadm control --reload
echo "Left: the users $user-N and $minter, $home, /etc/hil/secrets, /var/lib/hil (quarantine of the boards)."
