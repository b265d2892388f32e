#include "sequence/root.hpp"

#include <bit>
#include <new>
#include <utility>

namespace HOLDFAST_NAMESPACE::detail {

source_root::source_root(std::shared_ptr<block_store> store, sequence_environment around, sequence_store_options options)
    : around_(std::move(around)), options_(std::move(options)), here_([this, given = std::move(store)](const source_core* parent) {
        return std::make_shared<source_core>(parent == nullptr ? given : parent->store->for_child(), around_);
      }) {}

handle_places::~handle_places() {
  for (chunk* each = first_.load(); each != nullptr;) delete std::exchange(each, each->next.load());
}

handle_window* handle_places::take() {
  for (std::atomic<chunk*>* at = &first_;;) {
    chunk* here = at->load(std::memory_order_acquire);
    if (here == nullptr) {
      auto made = std::make_unique<chunk>();
      if (at->compare_exchange_strong(here, made.get(), std::memory_order_acq_rel)) here = made.release();
    }
    std::uint64_t used = here->used.load(std::memory_order_relaxed);
    while (~used != 0) {
      const int free = std::countr_one(used);
      if (here->used.compare_exchange_weak(used, used | std::uint64_t{1} << static_cast<unsigned>(free), std::memory_order_acquire)) {
        taken_.fetch_add(1, std::memory_order_relaxed);
        return new (static_cast<handle_window*>(here->page.data()) + free) handle_window;
      }
    }
    at = &here->next;
  }
}

void handle_places::put(handle_window* done) noexcept {
  for (chunk* each = first_.load(std::memory_order_acquire); each != nullptr; each = each->next.load(std::memory_order_acquire)) {
    auto* begin = static_cast<handle_window*>(each->page.data());
    if (done < begin || done >= begin + in_chunk) continue;
    each->used.fetch_and(~(std::uint64_t{1} << static_cast<unsigned>(done - begin)), std::memory_order_release);
    taken_.fetch_sub(1, std::memory_order_relaxed);
    return;
  }
}

sequence_root::sequence_root(std::shared_ptr<const sequence_config> config, std::shared_ptr<source_root> source,
                             const std::shared_ptr<metrics_sink>& metrics)
    : config_(std::move(config)),
      source_(std::move(source)),
      numbers_(std::make_shared<const sequence_instruments>(*isolate(metrics), config_->name)),
      page_(std::make_shared<const wiped_page>()),
      window_(new(page_->data()) sequence_window),
      here_([this](const sequence_core*) {
        return std::make_shared<sequence_core>(config_, source_->shared_core(), std::shared_ptr<sequence_window>(page_, window_), numbers_,
                                               page_->wipes());
      }) {}

std::optional<std::int64_t> sequence_root::draw(std::uint64_t& count, std::optional<sequence_core::time_point> deadline, bool partial) {
  const auto mine = window_->draw(count);
  if (mine.sure) return window_->id(mine.ticket);
  return settle(mine.ticket, count, deadline, partial);
}

std::optional<std::int64_t> sequence_root::settle(std::uint64_t ticket, std::uint64_t& count,
                                                  std::optional<sequence_core::time_point> deadline, bool partial) {
  const std::uint64_t wanted = count;
  for (;;) {
    std::int64_t first = 0;
    switch (core().settle(ticket, count, deadline, partial, first)) {
      case sequence_core::answer::owned:
        return first;
      case sequence_core::answer::redraw:
        break;
      case sequence_core::answer::later:
        return std::nullopt;
    }
    count = wanted;
    const auto mine = window_->draw(count);
    if (mine.sure) return window_->id(mine.ticket);
    ticket = mine.ticket;
  }
}

}  // namespace HOLDFAST_NAMESPACE::detail
