#include "unit/failover/scatter_fixture.hpp"
