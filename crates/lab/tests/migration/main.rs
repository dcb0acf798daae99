//! Connections whose addresses change: by a NAT that forgets, and because the client moves (RFC 9000 §9).

mod idle;
mod load;
mod loss;
mod rapid;
mod run;
