#pragma once

/// \file
/// Everything.

#include <holdfast/error.hpp>
#include <holdfast/key.hpp>
#include <holdfast/version.hpp>
