#!/bin/sh
# Sets this host up as the runner of the rack $rack: a user without rights, the root helper, udev's rules, the units.
# Read it, then: sudo sh install.sh          It may be run again; what it makes, uninstall.sh takes away.
# With DESTDIR=FOLDER it only copies, below that folder.
set -eu
cd "$$(dirname "$$0")"
to="$${DESTDIR:-}"

put() { # put FILE PLACE MODE
    mkdir -p "$$to$$(dirname "$$2")"
    install -m "$$3" "$$1" "$$to$$2"
}

if [ -z "$$to" ]; then
    [ "$$(id -u)" = 0 ] || { echo "install.sh: this needs root: sudo sh install.sh" >&2; exit 2; }
    getent group $group >/dev/null || groupadd --system $group
    for runner in $$(seq $instances); do # each job has a user of its own
        getent passwd "$user-$$runner" >/dev/null || useradd --system --gid $group --groups dialout --home-dir $home \
            --shell /usr/sbin/nologin "$user-$$runner"
    done
    getent passwd $minter >/dev/null || useradd --system --user-group --home-dir $home --shell /bin/sh $minter
    install -d -m 0755 -o root -g root $home $home/runner
    install -d -m 0755 -o root -g root $home/inbox
    for runner in $$(seq $instances); do
        install -d -m 0700 -o $minter -g $minter "$home/inbox/$$runner"
    done
    install -d -m 0755 -o root -g root /var/lib/hil
    install -d -m 0775 -o root -g $group /var/lib/hil/$rack # each of the runners replaces the rack's records
fi

put hil-helper /usr/local/lib/hil/hil-helper 0755
put helper.json /etc/hil/helper.json 0644
put 70-hil.rules /etc/udev/rules.d/70-hil.rules 0644
for unit in hil-runner@.service hil-runner@.path hil-helper.socket hil-helper@.service; do
    put "$$unit" "/etc/systemd/system/$$unit" 0644
done

[ -z "$$to" ] || exit 0
udevadm control --reload
udevadm trigger --subsystem-match=tty --subsystem-match=usb
systemctl daemon-reload
touch /etc/hil/secrets
chown root:$group /etc/hil/secrets
chmod 0640 /etc/hil/secrets
systemctl enable --now hil-helper.socket
for runner in $$(seq $instances); do
    systemctl enable --now "hil-runner@$$runner.path"
done
[ -x $home/runner/run.sh ] || echo "Next: unpack GitHub's runner into $home/runner, as root's (it is copied for each job)."
echo "Next: let the machine that mints log in as $minter on this host, by its key alone, and start there:"
echo "  hil runner serve --repo OWNER/REPO --to $minter@$$(hostname) $labels$serving"
