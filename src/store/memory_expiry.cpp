#include "store/memory_expiry.hpp"

namespace HOLDFAST_NAMESPACE {

memory_expiry_bucket& memory_expiry::bucket_of(timestamp expire_on) {
  const auto number = number_of(expire_on);
  // Most entries live as long as the one before: its bucket is the last.
  const auto hint = !buckets_.empty() && buckets_.rbegin()->first < number ? buckets_.end() : buckets_.lower_bound(number);
  return buckets_.try_emplace(hint, number, memory_expiry_bucket{.number = number})->second;
}

void memory_expiry::link(memory_node& node, memory_expiry_bucket& into) noexcept {
  node.bucket = &into;
  node.before = nullptr;
  node.behind = into.first;
  if (into.first != nullptr) into.first->before = &node;
  into.first = &node;
}

void memory_expiry::remove(memory_node& node) noexcept {
  memory_expiry_bucket& from = *node.bucket;
  (node.before != nullptr ? node.before->behind : from.first) = node.behind;
  if (node.behind != nullptr) node.behind->before = node.before;
  node.bucket = nullptr;
  if (from.first == nullptr) buckets_.erase(from.number);
}

void memory_expiry::move(memory_node& node, memory_expiry_bucket& into) noexcept {
  if (node.bucket == &into) return;
  remove(node);
  link(node, into);
}

}  // namespace HOLDFAST_NAMESPACE
