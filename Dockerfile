# The image for the public QUIC interop runner; docs/interop.md says how to use it.
FROM rust:1-bookworm AS build
RUN apt-get update && apt-get install -y --no-install-recommends cmake && rm -rf /var/lib/apt/lists/*
WORKDIR /src
COPY . .
RUN cargo build --release --locked --package fulmar-cli

FROM martenseemann/quic-network-simulator-endpoint:latest
COPY --from=build /src/target/release/fulmar /usr/local/bin/fulmar
COPY run_endpoint.sh .
RUN chmod +x run_endpoint.sh
ENTRYPOINT ["./run_endpoint.sh"]
