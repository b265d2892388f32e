#pragma once

/// \file
/// Reads and writes the values of a CacheKit cache. The keys are in key/cachekit.hpp and
/// key/interop.hpp.
///
/// | header | contents |
/// | --- | --- |
/// | cachekit/messagepack.hpp | decodes values from MessagePack |
/// | cachekit/envelope.hpp | the ByteStorage container: LZ4 and a checksum |
/// | cachekit/encryption.hpp | AES-256-GCM, bound to tenant, cache key and format |

#include <holdfast/cachekit/encryption.hpp>
#include <holdfast/cachekit/envelope.hpp>
#include <holdfast/cachekit/messagepack.hpp>
