#pragma once

/// \file
/// Keys: the same call gives the same key, in every process and in every language that follows the
/// same published format.
///
/// | header | keys |
/// | --- | --- |
/// | key/failover.hpp | Société Générale Failover: raw text, UUID, row |
/// | key/cachekit.hpp | CacheKit auto mode |
/// | key/interop.hpp | CacheKit interop/v1, keys and values |
/// | key/redis.hpp | Redis Cluster slots, hash-tagged prefixes, outbox keys |
/// | key/keyable.hpp | which C++ types can be part of a key, and how to add your own |
/// | key/value.hpp | arguments whose types are known only at run time |
/// | key/function_name.hpp | the name of a C++ function, for cachekit keys |
/// | key/typed_json.hpp, key/batch.hpp | keys from JSON text, one or many |

#include <holdfast/key/batch.hpp>
#include <holdfast/key/cachekit.hpp>
#include <holdfast/key/failover.hpp>
#include <holdfast/key/function_name.hpp>
#include <holdfast/key/interop.hpp>
#include <holdfast/key/keyable.hpp>
#include <holdfast/key/redis.hpp>
#include <holdfast/key/typed_json.hpp>
#include <holdfast/key/value.hpp>
