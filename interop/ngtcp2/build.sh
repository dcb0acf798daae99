#!/usr/bin/env bash
# Builds ngtcp2's programs for HTTP/3 (gtlsclient, gtlsserver) and for HTTP/0.9 (gtlsh09client, gtlsh09server) from the sources of
# Debian's backports into a directory.
# Needs a Debian system with a C++20 compiler, dpkg-dev, libgnutls28-dev and pkg-config; installs nothing.
set -euo pipefail
out=${1:?usage: build.sh DIR}
release=${DEBIAN_RELEASE:-bookworm}
mkdir -p "$out"
out=$(cd "$out" && pwd)
work="$out/build"
rm -rf "$work"
mkdir -p "$work"/{lists/partial,cache/archives/partial,debs,root}

key=/usr/share/keyrings/debian-archive-keyring.gpg
for suite in "$release" "$release-backports"; do
    echo "deb [signed-by=$key] http://deb.debian.org/debian $suite main"
    echo "deb-src [signed-by=$key] http://deb.debian.org/debian $suite main"
done >"$work/sources.list"
apt=(apt-get -q -o "Dir::Etc::sourcelist=$work/sources.list" -o Dir::Etc::sourceparts=/dev/null
    -o "Dir::State::lists=$work/lists" -o "Dir::Cache=$work/cache" -o APT::Sandbox::User=root)
"${apt[@]}" update
(cd "$work/debs" && "${apt[@]}" download libev4 libev-dev \
    "libnghttp3-9/$release-backports" "libnghttp3-dev/$release-backports")
(cd "$work" && "${apt[@]}" source --download-only --tar-only -t "$release-backports" ngtcp2)
for deb in "$work"/debs/*.deb; do dpkg -x "$deb" "$work/root"; done
mkdir "$work/ngtcp2"
tar -xf "$work"/ngtcp2_*.orig.tar.* -C "$work/ngtcp2" --strip-components=1

lib="$work/root/usr/lib/$(dpkg-architecture -qDEB_HOST_MULTIARCH)"
include="$work/root/usr/include"
cd "$work/ngtcp2"
./configure --disable-shared --with-gnutls --without-openssl --without-libbrotlienc --without-libbrotlidec --with-libev --with-libnghttp3 \
    LIBEV_CFLAGS="-I$include" LIBEV_LIBS="$lib/libev.a" \
    LIBNGHTTP3_CFLAGS="-I$include" LIBNGHTTP3_LIBS="$lib/libnghttp3.a" CXXFLAGS='-O1' CFLAGS='-O2' >"$work/configure.log"
jobs=${JOBS:-$(nproc)}
make -s -j"$jobs" -C lib >"$work/make.log" 2>&1
make -s -j"$jobs" -C crypto >>"$work/make.log" 2>&1
make -s -j"$jobs" -C third-party >>"$work/make.log" 2>&1
programs() {
    make -s -j"$jobs" -C examples gtlsclient gtlsserver CPPFLAGS="-I$work/ngtcp2/third-party" \
        LIBS="$work/ngtcp2/third-party/libhttp-parser.la" >>"$work/make.log" 2>&1
}
programs
cp examples/gtlsclient examples/gtlsserver "$out/"
# Only the HTTP/3 programs are built with GnuTLS; those for HTTP/0.9 have the same parts but for one file and the name of the
# protocol.
cp examples/h09client.cc examples/client.cc
cp examples/h09server.cc examples/server.cc
sed -i 's/H3_ALPN_V1/HQ_ALPN_V1/g' examples/tls_*_gnutls.cc
programs
cp examples/gtlsclient "$out/gtlsh09client"
cp examples/gtlsserver "$out/gtlsh09server"
rm -rf "$work"
printf '%s\n' "$out"/gtls*
