//! All tests that may run beside each other in one process: each file is a module of this one program, as every program
//! more is linked for seconds. `cargo test -p vinelift-tests --test together NAME` runs those that have `NAME` in their path.

mod big_graphs;
mod c_api;
mod chains;
mod classes;
mod compressed_weights;
mod contractions;
mod control_flow;
mod conversions;
mod derived_sizes;
mod dynamic_quantization;
mod folded_sums;
mod gathered_sums;
mod growing_loops;
mod growing_variables;
mod hostile_values;
mod in_place;
mod kv_caches;
mod loops;
mod masked_rows;
mod micro_batches;
mod picture_classes;
mod pictures;
mod quantized;
mod random_graphs;
mod resized_shapes;
mod round_trip;
mod run_time_shapes;
mod shape_values;
mod shared_plans;
mod threads;
mod tidy;
mod tiers;
mod variables_in_bodies;
mod wrong_input;
