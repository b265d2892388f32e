#pragma once

/// \file
/// Includes all public headers except the opt-in codecs and joins.

#include <holdfast/breaker.hpp>
#include <holdfast/cachekit.hpp>
#include <holdfast/clock.hpp>
#include <holdfast/codec.hpp>
#include <holdfast/database.hpp>
#include <holdfast/error.hpp>
#include <holdfast/executor.hpp>
#include <holdfast/failover.hpp>
#include <holdfast/id_generator.hpp>
#include <holdfast/key.hpp>
#include <holdfast/log.hpp>
#include <holdfast/metrics.hpp>
#include <holdfast/outbox.hpp>
#include <holdfast/outbox/admin.hpp>
#include <holdfast/outbox/effect.hpp>
#include <holdfast/outbox/memory.hpp>
#include <holdfast/outbox/relay.hpp>
#include <holdfast/payload.hpp>
#include <holdfast/redis.hpp>
#include <holdfast/result.hpp>
#include <holdfast/schema.hpp>
#include <holdfast/sequence.hpp>
#include <holdfast/sql.hpp>
#include <holdfast/store.hpp>
#include <holdfast/store/cleanup.hpp>
#include <holdfast/store/compose.hpp>
#include <holdfast/store/memory.hpp>
#include <holdfast/store/probe.hpp>
#include <holdfast/store/tiered.hpp>
#include <holdfast/store/write_behind.hpp>
#include <holdfast/uuid.hpp>
#include <holdfast/version.hpp>
#include <holdfast/worker.hpp>
