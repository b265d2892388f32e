#pragma once

#include "support/galera_cluster.hpp"

namespace holdfast::test {

/// The cluster of this program, for tests that do not disturb it. Started at the first call.
inline galera_cluster& shared_galera() {
  static galera_cluster cluster;
  return cluster;
}

}  // namespace holdfast::test
