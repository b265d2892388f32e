#pragma once

/// \file
/// What runs inside Redis. A counter is a hash with the fields `last` (the last ordinal granted), `epoch`, and, where a fence needs them,
/// `server` (the replication id of the server that granted it) and `top` (the end of the super-block). Lua's numbers are doubles, so ordinals
/// travel as text and are added up in two halves of nine digits: nothing is rounded and nothing overflows.

#include <holdfast/redis.hpp>
#include <holdfast/version.hpp>

namespace HOLDFAST_NAMESPACE::redis_scripts {

/// KEYS: the counter. ARGV: count, limit, cycle (0 or 1). Answers {"granted", first, last, epoch} or {"end", epoch}.
[[nodiscard]] const redis::script& allocate();

/// Out of a super-block. ARGV: count, limit, the last ordinal and the epoch that the caller has seen, and, to bring a new super-block, its first,
/// last and epoch, else three times nothing. Answers {"granted", ...} or {"refill"}.
[[nodiscard]] const redis::script& allocate_from_super_block();

/// Not ahead of the time. ARGV: count, limit, rate, origin in seconds, max_skew in microseconds.
/// Answers {"granted", ...}, {"end", epoch} or {"wait", microseconds}.
[[nodiscard]] const redis::script& allocate_by_clock();

/// Answers {last, epoch, 1 when this server granted it, else 0}, or nothing.
[[nodiscard]] const redis::script& peek();

/// ARGV: ordinal. Answers {last, epoch}.
[[nodiscard]] const redis::script& raise();

/// After the store below was raised. ARGV: ordinal, and the last ordinal and the epoch of the store below. Answers {last, epoch}.
[[nodiscard]] const redis::script& raise_super_block();

/// If the counter is {last, epoch}: sets it. ARGV: last, epoch, the new last, the new epoch, and 1 when only the server that granted it may.
/// Answers 1, else 0.
[[nodiscard]] const redis::script& replace();

/// If the counter is {last, epoch}: forgets it. ARGV: last, epoch. Answers 1, else 0.
[[nodiscard]] const redis::script& forget();

}  // namespace HOLDFAST_NAMESPACE::redis_scripts
