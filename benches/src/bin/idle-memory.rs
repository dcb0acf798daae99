//! The bytes on the heap that an idle connection of the core holds, at either end, as lines of JSON. What a connection frees when it
//! is dropped is what it held; what both ends share (configurations, keys of the endpoint) is no part of it. Neither are the keys of
//! packets: they are those of aws-lc on every processor, which allocates them in C, so that the figures can be compared.
#![forbid(unsafe_code)]

use allocation_counter::measure;
use fulmar_benches::Setup;
use fulmar_proto::AeadBackend;

fn main() {
    let setup = Setup::default().with_aead(AeadBackend::AwsLc);
    let mut pair = setup.connect();
    pair.rest();
    let (client, server) = pair.into_connections();
    let (client, server) = (client.rest(), server.rest());
    let inline = size_of_val(&client) as i64;
    let client = -measure(|| drop(client)).bytes_current;
    let server = -measure(|| drop(server)).bytes_current;
    println!(r#"{{"client_heap":{client},"server_heap":{server},"inline":{inline}}}"#);
}
