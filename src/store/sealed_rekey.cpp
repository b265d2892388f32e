#include "store/sealed_rekey.hpp"

#include <utility>

namespace HOLDFAST_NAMESPACE {

namespace {

/// Each page is one transaction: small, so that writers of the same rows do not wait long.
constexpr std::size_t page_size = 100;
/// How often an entry is looked at again when others wrote it meanwhile.
constexpr int most_rereads = 3;

class rekeying {
 public:
  rekeying(store& raw, rewritable_store& rewrites, sealer& with, const rekey_options& options)
      : raw_(raw), rewrites_(rewrites), with_(with), options_(options) {}

  rekey_report run() {
    const auto names = all_names();
    for (const auto& name : names) report_.total += raw_.count({name, options_.realm});
    tell();
    for (const auto& name : names) {
      if (!one_name(name)) break;
    }
    return std::move(report_);
  }

 private:
  using rewriting = rewritable_store::rewriting;

  std::vector<std::string> all_names() {
    if (!options_.names.empty()) return options_.names;
    std::vector<std::string> names;
    // Nothing unbounded: a table has as many names as a service has points.
    constexpr std::size_t most = 100'000;
    for (auto next = rewrites_.name_after({}, options_.realm); next; next = rewrites_.name_after(names.back(), options_.realm)) {
      if (names.size() == most) throw error(errc::too_large, "the table has more than 100,000 names; rekey them by name");
      names.push_back(*std::move(next));
    }
    return names;
  }

  /// False when it was asked to stop.
  bool one_name(const std::string& name) {
    std::string after;
    for (;;) {
      if (options_.stop.stop_requested()) {
        report_.stopped = true;
        return false;
      }
      auto page = raw_.find_all({name, options_.realm}, page_size, after);
      report_.seen += page.entries.size() + page.unreadable;
      report_.unreadable += page.unreadable;
      if (page.unreadable > 0 && report_.problem.empty()) report_.problem = "a row's columns are not what they should hold";
      one_page(page.entries);
      tell();
      if (!page.next) return true;
      after = *std::move(page.next);
    }
  }

  void one_page(std::vector<entry>& entries) {
    std::vector<rewriting> work;
    for (auto& each : entries) {
      if (auto todo = sealed_anew(std::move(each))) work.push_back(*std::move(todo));
    }
    if (options_.only_count) {
      report_.changed += work.size();
      return;
    }
    if (work.empty()) return;
    const auto replaced = rewrites_.rewrite(work);
    if (replaced == work.size()) {
      report_.changed += replaced;
      return;
    }
    // Somebody was faster with some of them, or it was not known whether it happened: each is looked at again.
    for (auto& each : work) again(each);
  }

  void again(const rewriting& first) {
    std::optional<rewriting> todo;
    for (int tried = 0; tried < most_rereads; ++tried) {
      auto there = raw_.find({first.was.name, first.was.realm}, first.was.key);
      if (there && there->payload == first.payload) {  // it was replaced after all
        ++report_.changed;
        return;
      }
      if (!there) break;
      todo = sealed_anew(*std::move(there));
      if (!todo) return;
      if (rewrites_.rewrite({&*todo, 1}) == 1) {
        ++report_.changed;
        return;
      }
    }
    ++report_.moved;
  }

  /// What there is to do with an entry; counts it when that is nothing.
  std::optional<rewriting> sealed_anew(entry was) {
    if (!was.payload) {
      ++report_.tombstones;
      return std::nullopt;
    }
    try {
      if (with_.is_current(*was.payload)) {
        ++report_.current;
        return std::nullopt;
      }
      entry plain = was;
      with_.open(plain);
      std::string sealed = with_.seal(plain);
      return rewriting{.was = std::move(was), .payload = std::move(sealed)};
    } catch (const error& e) {
      ++report_.unreadable;
      if (report_.problem.empty()) report_.problem = e.what();
      return std::nullopt;
    }
  }

  void tell() {
    if (options_.progress) options_.progress(report_);
  }

  store& raw_;
  rewritable_store& rewrites_;
  sealer& with_;
  const rekey_options& options_;
  rekey_report report_{};
};

}  // namespace

rekey_report rekey_entries(store& raw, rewritable_store& rewrites, sealer& with, const rekey_options& options) {
  return rekeying(raw, rewrites, with, options).run();
}

}  // namespace HOLDFAST_NAMESPACE
