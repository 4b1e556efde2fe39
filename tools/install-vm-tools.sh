#!/bin/sh
# Installs what microVMs need on a host with Debian or Ubuntu, and fetches the package of a kernel for them, which is not installed.
# Run it as often as you like: what is there is left alone.
#
#   tools/install-vm-tools.sh [FOLDER]   FOLDER gets the kernel's package (default: the present one)
#
# qemu-system-x86   the VMM of the driver "qemu" (with seabios: its firmware), on x86-64
# squashfs-tools-ng tar2sqfs: images and payloads        e2fsprogs   mke2fs: scratch disks
# mmdebstrap        images from a suite of Debian        xz-utils    packages and kernels packed with xz
# bubblewrap        the driver "process"                 gcc, libc6-dev  guest-init, in a checkout
set -eu

packages='squashfs-tools-ng e2fsprogs mmdebstrap xz-utils bubblewrap gcc libc6-dev'
kernel_of=
case "$(uname -m)" in
x86_64)
  packages="$packages qemu-system-x86 seabios"
  kernel_of=linux-image-cloud-amd64
  ;;
esac

command -v apt-get >/dev/null || {
  echo 'install-vm-tools: apt-get is not here. Install the same programs in the way of this system:' >&2
  echo "  $packages" >&2
  exit 1
}

missing=
for package in $packages; do
  [ "$(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null)" = installed ] || missing="$missing $package"
done
if [ -n "$missing" ]; then
  as_root=
  [ "$(id -u)" = 0 ] || as_root=sudo
  echo "installing$missing"
  $as_root apt-get update
  # shellcheck disable=SC2086 # The lists are words.
  $as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends $missing
else
  echo 'all programs are installed'
fi

[ -n "$kernel_of" ] || {
  echo "no kernel is fetched for $(uname -m): firecrew image kernel takes those for x86-64 so far"
  exit 0
}
folder=${1:-.}
cd "$folder"
name=$(apt-cache depends "$kernel_of" 2>/dev/null | sed -n 's/^ *Depends: \(linux-image-[^ ]*\)$/\1/p' | head -n 1)
[ -n "$name" ] || {
  echo "install-vm-tools: the sources of apt have no $kernel_of; add those of Debian, or give firecrew image kernel another kernel" >&2
  exit 1
}
for file in "$name"_*.deb; do
  [ -e "$file" ] || {
    apt-get download "$name"
    break
  }
done
echo "kernel: $(pwd)/$(ls "$name"_*.deb | tail -n 1)"
echo "next:   firecrew image kernel --from $(pwd)/$(ls "$name"_*.deb | tail -n 1)"
