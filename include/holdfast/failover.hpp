#pragma once

/// \file
/// Protected calls: if the upstream fails, serve its last good answer. See docs/failover.md.

#include <holdfast/failover/answer.hpp>
#include <holdfast/failover/call_context.hpp>
#include <holdfast/failover/classify.hpp>
#include <holdfast/failover/decision.hpp>
#include <holdfast/failover/drill.hpp>
#include <holdfast/failover/each.hpp>
#include <holdfast/failover/engine.hpp>
#include <holdfast/failover/expiry.hpp>
#include <holdfast/failover/gathered.hpp>
#include <holdfast/failover/hooks.hpp>
#include <holdfast/failover/list.hpp>
#include <holdfast/failover/options.hpp>
#include <holdfast/failover/outlook.hpp>
#include <holdfast/failover/point.hpp>
#include <holdfast/failover/scatter.hpp>
#include <holdfast/failover/splitter.hpp>
#include <holdfast/failover/status.hpp>
