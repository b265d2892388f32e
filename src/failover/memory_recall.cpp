#include "failover/memory_recall.hpp"

namespace HOLDFAST_NAMESPACE::detail::failover {

namespace {

thread_local memory_recall* recall_of_this_thread = nullptr;

}  // namespace

memory_recall::memory_recall() noexcept { recall_of_this_thread = this; }

memory_recall::~memory_recall() { recall_of_this_thread = nullptr; }

memory_recall* memory_recall::current() noexcept { return recall_of_this_thread; }

}  // namespace HOLDFAST_NAMESPACE::detail::failover
