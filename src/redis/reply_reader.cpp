#include "redis/reply_reader.hpp"

#include "redis/server_error.hpp"

#include <hiredis/read.h>

#include <new>
#include <string>
#include <utility>

namespace HOLDFAST_NAMESPACE::redis {

// An object of hiredis is a place for a reply: the root, or an element of a list that has its full size from the beginning. Nothing is
// ever freed through it. A null pointer means "out of memory" to hiredis, which then ends with an error.
const redisReplyObjectFunctions reply_reader::functions{on_text, on_list, on_integer, on_nil, [](void*) {}};

void reply_reader::deleter::operator()(redisReader* held) const noexcept { redisReaderFree(held); }

reply_reader::reply_reader(std::size_t max_reply)
    // hiredis never writes to the functions.
    : reader_(redisReaderCreateWithFunctions(const_cast<redisReplyObjectFunctions*>(&functions))), max_reply_(max_reply) {
  if (!reader_) throw std::bad_alloc();
  reader_->privdata = this;
}

reply_reader::~reply_reader() = default;

reply& reply_reader::place_of(const redisReadTask& task) noexcept {
  if (task.parent == nullptr) return root_;
  auto& parent = *static_cast<reply*>(task.parent->obj);
  return (*std::get_if<reply::list>(&parent.held_))[static_cast<std::size_t>(task.idx)];
}

bool reply_reader::charge(std::size_t bytes) noexcept {
  charged_ += bytes;
  if (charged_ > max_reply_) too_large_ = true;
  return !too_large_;
}

// No exception may pass through hiredis.
void* reply_reader::on_text(const redisReadTask* task, char* text, std::size_t size) noexcept {
  auto& self = *static_cast<reply_reader*>(task->privdata);
  if (!self.charge(size)) return nullptr;
  try {
    reply& place = self.place_of(*task);
    if (task->type == REDIS_REPLY_ERROR) place.held_ = server_error({text, size});
    else place.held_.emplace<std::string>(text, size);
    return &place;
  } catch (...) {
    return nullptr;
  }
}

void* reply_reader::on_list(const redisReadTask* task, int size) noexcept {
  auto& self = *static_cast<reply_reader*>(task->privdata);
  const auto count = static_cast<std::size_t>(size);
  if (!self.charge(count * sizeof(reply))) return nullptr;
  try {
    reply& place = self.place_of(*task);
    place.held_.emplace<reply::list>(count);
    return &place;
  } catch (...) {
    return nullptr;
  }
}

void* reply_reader::on_integer(const redisReadTask* task, long long number) noexcept {
  auto& self = *static_cast<reply_reader*>(task->privdata);
  reply& place = self.place_of(*task);
  place.held_.emplace<std::int64_t>(number);
  return &place;
}

void* reply_reader::on_nil(const redisReadTask* task) noexcept {
  auto& self = *static_cast<reply_reader*>(task->privdata);
  reply& place = self.place_of(*task);
  place.held_.emplace<std::monostate>();
  return &place;
}

void reply_reader::feed(std::string_view bytes) {
  if (redisReaderFeed(reader_.get(), bytes.data(), bytes.size()) != REDIS_OK) throw std::bad_alloc();
}

std::optional<reply> reply_reader::next() {
  void* found = nullptr;
  if (redisReaderGetReply(reader_.get(), &found) != REDIS_OK) {
    const std::string why = static_cast<const char*>(reader_->errstr);
    if (too_large_) {
      throw error(errc::too_large, "a reply of Redis takes more than " + std::to_string(max_reply_) +
                                       " bytes; ask for less at once, or raise options::max_reply");
    }
    if (reader_->err == REDIS_ERR_OOM) throw std::bad_alloc();
    if (why.find("depth") != std::string::npos)
      throw error(errc::too_deep, "a reply of Redis has more than 7 lists in each other; ask for it in another form");
    throw error(errc::malformed, "what came back is not Redis's protocol (" + why + "); check that a Redis server listens there");
  }
  if (found != nullptr) {
    charged_ = 0;
    return std::exchange(root_, reply());
  }
  // Part of a reply. What waits in the buffer is bounded, too: a text is kept there until its end has come.
  if (reader_->len - reader_->pos > max_reply_ + 64) {
    throw error(errc::too_large, "a reply of Redis takes more than " + std::to_string(max_reply_) +
                                     " bytes; ask for less at once, or raise options::max_reply");
  }
  return std::nullopt;
}

// Inside a list the index is 1 or more; at 0 it only waits for the first byte of the next reply.
bool reply_reader::empty() const noexcept { return reader_->len == reader_->pos && reader_->ridx <= 0; }

}  // namespace HOLDFAST_NAMESPACE::redis
