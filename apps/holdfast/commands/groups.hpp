#pragma once

/// \file
/// The groups of subcommands. A new group is one function here, one call in program.cpp, and a
/// folder next to this file.

#include "terminal/command.hpp"

namespace holdfast::cli {

void add_key_commands(command root);
void add_store_commands(command root);
void add_seq_commands(command root);
void add_redis_commands(command root);
void add_outbox_commands(command root);
void add_schema_commands(command root);
void add_doctor_command(command root);
void add_serve_commands(command root);
void add_backup_commands(command root);
void add_gateway_command(command root);
void add_bench_commands(command root);
void add_config_commands(command root);
void add_demo_command(command root);
void add_completion_command(command root);
void add_man_command(command root);

// Parts of the key group.
void add_batch_command(command key);

// Parts of the store group.
void add_names_command(command store);
void add_transfer_commands(command store);
void add_store_doctor(command store);
void add_rekey_command(command store);
void add_clean_command(command store);

// Parts of the outbox group.
void add_publish_commands(command outbox);
void add_recur_commands(command outbox);
void add_inspect_commands(command outbox);
void add_parked_commands(command outbox);
void add_work_command(command outbox);
void add_tail_command(command outbox);
void add_outbox_doctor(command outbox);
void add_outbox_transfer(command outbox);

// Parts of the seq group.
void add_seq_transfer(command seq);

// Parts of the serve group.
void add_token_commands(command serve);
/// holdfast gateway invalidate.
void add_gateway_invalidate_command(command gateway_command);

}  // namespace holdfast::cli
