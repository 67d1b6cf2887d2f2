#!/bin/sh
# Builds a Debian package of a toolgate binary: build.sh BINARY OUT.deb
#
# The package has the program, the systemd unit with its user, and an empty configuration. It starts
# nothing: `systemctl enable --now toolgate` does. TOOLGATE_DEB_COMPRESSION=none builds faster.
set -eu
[ $# -eq 2 ] || { echo "usage: $0 BINARY OUT.deb" >&2; exit 64; }
binary=$1
out=$2
here=$(cd "$(dirname "$0")" && pwd)
repository=$(cd "$here/../.." && pwd)
version=$(sed -n 's/^version = "\(.*\)"/\1/p' "$repository/Cargo.toml" | head -n 1)
tree=$(mktemp -d)
chmod 755 "$tree"
trap 'rm -rf "$tree"' EXIT

install -D -m 0755 "$binary" "$tree/usr/bin/toolgate"
install -D -m 0644 "$repository/deploy/systemd/toolgate.sysusers" "$tree/usr/lib/sysusers.d/toolgate.conf"
install -D -m 0644 "$repository/deploy/systemd/toolgate.service" "$tree/usr/lib/systemd/system/toolgate.service"
sed -i 's|/usr/local/bin/toolgate|/usr/bin/toolgate|g' "$tree/usr/lib/systemd/system/toolgate.service"
install -D -m 0644 "$here/toolgate.yaml" "$tree/etc/toolgate/toolgate.yaml"
install -D -m 0644 "$repository/LICENSE" "$tree/usr/share/doc/toolgate/copyright"
install -D -m 0644 "$repository/CHANGELOG.md" "$tree/usr/share/doc/toolgate/CHANGELOG.md"
install -D -m 0644 "$repository/deploy/prometheus/toolgate.rules.yml" "$tree/usr/share/doc/toolgate/toolgate.rules.yml"
install -D -m 0644 "$repository/deploy/grafana/toolgate.json" "$tree/usr/share/doc/toolgate/grafana.json"

size=$(du -sk "$tree" | cut -f 1)
mkdir -m 0755 "$tree/DEBIAN"
cat >"$tree/DEBIAN/control" <<END
Package: toolgate
Version: $version
Architecture: $(dpkg --print-architecture)
Maintainer: The toolgate authors <toolgate@localhost>
Installed-Size: $size
Depends: libc6
Recommends: systemd
Section: net
Priority: optional
Description: gateway with policies between AI agents and MCP tools
 Decides every call of an AI agent to an MCP tool by a deterministic policy
 before it is sent, counts it exactly, and keeps a tamper-evident audit.
END
echo /etc/toolgate/toolgate.yaml >"$tree/DEBIAN/conffiles"
install -m 0755 "$here/postinst" "$here/prerm" "$here/postrm" "$tree/DEBIAN/"
dpkg-deb -Z"${TOOLGATE_DEB_COMPRESSION:-xz}" --root-owner-group --build "$tree" "$out"
