#pragma once

/// \file
/// The groups of subcommands. A new group is one function here, one line in program.cpp, and a file of its own.

#include "command.hpp"

namespace holdfast::cli {

void add_key_commands(command root);
void add_store_commands(command root);
void add_seq_commands(command root);
void add_redis_commands(command root);
void add_outbox_commands(command root);
void add_bench_commands(command root);
void add_demo_command(command root);
void add_completion_command(command root);

/// Part of the key group: many keys from JSON Lines.
void add_batch_command(command key);

/// Parts of the store group: entries from and to JSON Lines; what is wrong with a store.
void add_transfer_commands(command store);
void add_doctor_command(command store);

/// Part of the store group: sealing its payloads anew with the current key.
void add_rekey_command(command store);

/// Part of the store group: removing what has expired, now or on a schedule.
void add_clean_command(command store);

/// Parts of the outbox group: delivering events, and seeing them come.
void add_work_command(command outbox);
void add_tail_command(command outbox);

}  // namespace holdfast::cli
