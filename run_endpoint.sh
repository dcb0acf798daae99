#!/bin/bash
# The entry point of the image for the public QUIC interop runner (https://github.com/quic-interop/quic-interop-runner).
set -e

# Routes of the simulated network and checksums of the interfaces.
/setup.sh

case "$ROLE" in
client)
    # The network is up when this port of the simulator answers.
    /wait-for-it.sh sim:57832 -s -t 30
    exec fulmar -v interop client $CLIENT_PARAMS
    ;;
server)
    exec fulmar -v interop server $SERVER_PARAMS
    ;;
*)
    echo "ROLE is neither client nor server: '$ROLE'" >&2
    exit 1
    ;;
esac
