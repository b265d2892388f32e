#include "store/sealed/rekey.hpp"

#include <utility>

namespace HOLDFAST_NAMESPACE::detail::store {

namespace {

/// Each page is one transaction. It is small, so that other writers do not wait long.
constexpr std::size_t page_size = 100;
/// Attempts for an entry that others write meanwhile.
constexpr int max_attempts_per_entry = 3;
/// A table has about as many names as its services have points.
constexpr std::size_t max_names = 100'000;

class rekey_run {
 public:
  rekey_run(holdfast::store& entries, rewritable_store& rewrites, sealer& cipher,
            const rekey_options& options)
      : entries_(entries), rewrites_(rewrites), cipher_(cipher), options_(options) {}

  rekey_report run() {
    const auto names = names_to_rekey();
    for (const auto& name : names) report_.total += entries_.count({name, options_.realm});
    report_progress();
    for (const auto& name : names) {
      if (!rekey_name(name)) break;
    }
    return std::move(report_);
  }

 private:
  using rewriting = rewritable_store::rewriting;

  std::vector<std::string> names_to_rekey() {
    if (!options_.names.empty()) return options_.names;
    std::vector<std::string> names;
    for (auto next = rewrites_.name_after({}, options_.realm); next;
         next = rewrites_.name_after(names.back(), options_.realm)) {
      if (names.size() == max_names)
        throw error(errc::too_large, "the table has more than 100,000 names; rekey them by name");
      names.push_back(*std::move(next));
    }
    return names;
  }

  /// Returns false if the caller requested a stop.
  bool rekey_name(const std::string& name) {
    std::string after;
    for (;;) {
      if (options_.stop.stop_requested()) {
        report_.stopped = true;
        return false;
      }
      auto page = entries_.find_all({name, options_.realm}, page_size, after);
      report_.seen += page.entries.size() + page.unreadable;
      report_.unreadable += page.unreadable;
      if (page.unreadable > 0 && report_.problem.empty())
        report_.problem = "a column of a row does not contain a valid value";
      rekey_page(page.entries);
      report_progress();
      if (!page.next) return true;
      after = *std::move(page.next);
    }
  }

  void rekey_page(std::vector<entry>& entries) {
    std::vector<rewriting> rewritings;
    for (auto& e : entries) {
      if (auto r = seal_again(std::move(e))) rewritings.push_back(*std::move(r));
    }
    if (options_.only_count) {
      report_.changed += rewritings.size();
      return;
    }
    if (rewritings.empty()) return;
    const auto replaced = rewrites_.rewrite(rewritings);
    if (replaced == rewritings.size()) {
      report_.changed += replaced;
      return;
    }
    // Others have written some of the entries, or the result was in doubt. Check each entry.
    for (const auto& r : rewritings) retry(r);
  }

  void retry(const rewriting& first) {
    for (int attempt = 0; attempt < max_attempts_per_entry; ++attempt) {
      auto stored = entries_.find({first.stored.name, first.stored.realm}, first.stored.key);
      if (!stored) break;
      if (stored->payload == first.payload) {  // the first attempt has succeeded
        ++report_.changed;
        return;
      }
      const auto next = seal_again(*std::move(stored));
      if (!next) return;
      if (rewrites_.rewrite({&*next, 1}) == 1) {
        ++report_.changed;
        return;
      }
    }
    ++report_.moved;
  }

  /// Returns the new payload of an entry. If there is none, counts the reason.
  std::optional<rewriting> seal_again(entry stored) {
    if (!stored.payload) {
      ++report_.tombstones;
      return std::nullopt;
    }
    try {
      if (cipher_.is_current(*stored.payload)) {
        ++report_.current;
        return std::nullopt;
      }
      entry plain = stored;
      cipher_.open(plain);
      std::string sealed = cipher_.seal(plain);
      return rewriting{.stored = std::move(stored), .payload = std::move(sealed)};
    } catch (const error& e) {
      ++report_.unreadable;
      if (report_.problem.empty()) report_.problem = e.what();
      return std::nullopt;
    }
  }

  void report_progress() {
    if (options_.progress) options_.progress(report_);
  }

  holdfast::store& entries_;
  rewritable_store& rewrites_;
  sealer& cipher_;
  const rekey_options& options_;
  rekey_report report_{};
};

}  // namespace

rekey_report rekey_entries(holdfast::store& entries, rewritable_store& rewrites, sealer& cipher,
                           const rekey_options& options) {
  return rekey_run(entries, rewrites, cipher, options).run();
}

}  // namespace HOLDFAST_NAMESPACE::detail::store
