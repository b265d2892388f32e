#include "failover/read.hpp"

namespace HOLDFAST_NAMESPACE::detail::failover {

read_result find_row(holdfast::store& store, place location, std::string_view key,
                     std::exception_ptr& error) noexcept {
  try {
    auto row = store.find(location, key);
    const auto status = row ? read_status::row : read_status::no_row;
    return {.status = status, .row = std::move(row)};
  } catch (...) {
    error = std::current_exception();
    return {.status = read_status::failed};
  }
}

counter counter_of(read_status status) noexcept {
  if (status == read_status::failed) return counter::read_failed;
  return status == read_status::late ? counter::read_late : counter::not_found;
}

read_result read_row(const std::shared_ptr<point_core>& point, const call_base& call) {
  auto& engine = point->engine;
  const auto warn_if = [&](const std::exception_ptr& error) {
    if (error) point->warn("read", "the store could not be read; there is nothing to serve", error);
  };
  if (!engine.reads_block) {
    std::exception_ptr error;
    auto result =
        find_row(*engine.front_store, place(point->effective_name, call.realm), call.key, error);
    warn_if(error);
    return result;
  }
  struct row_read : store_work {
    read_result result{};
    std::exception_ptr read_error{};
  };
  const auto read = std::make_shared<row_read>();
  const auto deadline = engine.clock->steady() + engine.options.storage.read_deadline;
  if (!engine.start(read, [read = read.get(), store = engine.front_store,
                           name = point->effective_name, realm = call.realm, key = call.key] {
        read->result = find_row(*store, place(name, realm), key, read->read_error);
      })) {
    point->warn("read", "no thread is free to read the store; there is nothing to serve");
    return {.status = read_status::failed};
  }
  if (!engine.wait_for(*read, deadline)) {
    point->warn("read_late",
                "the store did not answer within the read deadline; there is nothing to serve");
    return {.status = read_status::late};
  }
  warn_if(read->read_error);
  return std::move(read->result);
}

void erase_expired(const std::shared_ptr<point_core>& point, const entry& expired) noexcept {
  auto& engine = point->engine;
  const auto erase = [](holdfast::store& store, const entry& row) {
    try {
      store.erase(place(row), row.key, row.as_of);
    } catch (...) {  // NOLINT(bugprone-empty-catch)
      // The row stays and is not served; the cleanup of the store removes it.
    }
  };
  try {
    if (!engine.reads_block) return erase(*engine.front_store, expired);
    const auto row = std::make_shared<entry>(entry{
        .name = expired.name, .key = expired.key, .as_of = expired.as_of, .realm = expired.realm});
    (void)engine.reads().post(
        engine.in_this_context([store = engine.front_store, row, erase] { erase(*store, *row); }));
  } catch (...) {  // NOLINT(bugprone-empty-catch)
    // As above.
  }
}

}  // namespace HOLDFAST_NAMESPACE::detail::failover
