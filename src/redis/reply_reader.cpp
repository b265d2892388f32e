#include "redis/reply_reader.hpp"

#include "redis/server_error.hpp"

#include <hiredis/read.h>

#include <new>
#include <string>
#include <utility>

namespace HOLDFAST_NAMESPACE::detail::redis {

// hiredis calls these functions for every element and keeps the pointers that they return. Each
// pointer refers to a `reply`: the root, or an element of a list, which has its full size from the
// start. The root owns all of them, so the last function, which frees a reply, does nothing. A null
// pointer means "out of memory" to hiredis, which then reports an error.
const redisReplyObjectFunctions reply_reader::functions{on_text, on_list, on_integer, on_nil,
                                                        [](void*) {}};

void reply_reader::deleter::operator()(redisReader* reader) const noexcept {
  redisReaderFree(reader);
}

reply_reader::reply_reader(std::size_t max_reply)
    // hiredis does not modify the functions.
    : reader_(redisReaderCreateWithFunctions(const_cast<redisReplyObjectFunctions*>(&functions))),
      max_reply_(max_reply) {
  if (!reader_) throw std::bad_alloc();
  reader_->privdata = this;
}

reply_reader::~reply_reader() = default;

reply& reply_reader::target_of(const redisReadTask& task) noexcept {
  if (task.parent == nullptr) return root_;
  auto& parent = *static_cast<reply*>(task.parent->obj);
  return (*std::get_if<reply::list>(&parent.value_))[static_cast<std::size_t>(task.idx)];
}

/// Returns false if the reply is too large with these bytes.
bool reply_reader::reserve(std::size_t bytes) noexcept {
  used_ += bytes;
  if (used_ > max_reply_) too_large_ = true;
  return !too_large_;
}

// Exceptions must not pass through hiredis.
void* reply_reader::on_text(const redisReadTask* task, char* text, std::size_t size) noexcept {
  auto& self = *static_cast<reply_reader*>(task->privdata);
  if (!self.reserve(size)) return nullptr;
  try {
    reply& target = self.target_of(*task);
    if (task->type == REDIS_REPLY_ERROR) target.value_ = server_error({text, size});
    else target.value_.emplace<std::string>(text, size);
    return &target;
  } catch (...) {
    return nullptr;
  }
}

void* reply_reader::on_list(const redisReadTask* task, int size) noexcept {
  auto& self = *static_cast<reply_reader*>(task->privdata);
  const auto count = static_cast<std::size_t>(size);
  if (!self.reserve(count * sizeof(reply))) return nullptr;
  try {
    reply& target = self.target_of(*task);
    target.value_.emplace<reply::list>(count);
    return &target;
  } catch (...) {
    return nullptr;
  }
}

void* reply_reader::on_integer(const redisReadTask* task, long long number) noexcept {
  reply& target = static_cast<reply_reader*>(task->privdata)->target_of(*task);
  target.value_.emplace<std::int64_t>(number);
  return &target;
}

void* reply_reader::on_nil(const redisReadTask* task) noexcept {
  reply& target = static_cast<reply_reader*>(task->privdata)->target_of(*task);
  target.value_.emplace<std::monostate>();
  return &target;
}

void reply_reader::feed(std::string_view bytes) {
  if (redisReaderFeed(reader_.get(), bytes.data(), bytes.size()) != REDIS_OK)
    throw std::bad_alloc();
}

void reply_reader::throw_too_large() const {
  throw error(errc::too_large, "a reply of Redis is larger than " + std::to_string(max_reply_) +
                                   " bytes; ask for less at once, or raise options::max_reply");
}

void reply_reader::throw_reader_error() const {
  if (too_large_) throw_too_large();
  if (reader_->err == REDIS_ERR_OOM) throw std::bad_alloc();
  const std::string reason = static_cast<const char*>(reader_->errstr);
  if (reason.find("depth") != std::string::npos)
    throw error(errc::too_deep,
                "a reply of Redis has more than 7 nested lists; ask for it in another form");
  throw error(errc::malformed, "the reply does not follow the protocol of Redis (" + reason +
                                   "); check that a Redis server listens there");
}

std::optional<reply> reply_reader::next() {
  void* complete = nullptr;
  if (redisReaderGetReply(reader_.get(), &complete) != REDIS_OK) throw_reader_error();
  if (complete != nullptr) {
    used_ = 0;
    return std::exchange(root_, reply());
  }
  // The buffer of hiredis is limited as well: it keeps a text until its last byte has arrived. The
  // text may have a frame of up to 64 bytes.
  if (reader_->len - reader_->pos > max_reply_ + 64) throw_too_large();
  return std::nullopt;
}

// Inside a list `ridx` is 1 or more. At 0 the reader waits for the first byte of the next reply.
bool reply_reader::empty() const noexcept {
  return reader_->len == reader_->pos && reader_->ridx <= 0;
}

}  // namespace HOLDFAST_NAMESPACE::detail::redis
