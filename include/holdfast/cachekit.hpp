#pragma once

/// \file
/// Reads and writes the values of a CacheKit cache. The keys are in key/cachekit.hpp and
/// key/interop.hpp.
///
/// | header | contents |
/// | --- | --- |
/// | cachekit/messagepack.hpp | decodes values from MessagePack |
/// | cachekit/envelope.hpp | the ByteStorage container: LZ4 and a checksum |
/// | cachekit/frame.hpp | the frame of CacheKit for Python around values of auto mode |
/// | cachekit/encryption.hpp | AES-256-GCM, bound to tenant, cache key and format |

#include <holdfast/cachekit/encryption.hpp>
#include <holdfast/cachekit/envelope.hpp>
#include <holdfast/cachekit/frame.hpp>
#include <holdfast/cachekit/messagepack.hpp>
