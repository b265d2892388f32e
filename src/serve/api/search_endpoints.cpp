// Looks where a text occurs: as the key of an entry, the id of an event, or in the name of a
// sequence, a point or a store's name. The number of questions is bounded, and a database that does
// not answer is named in the answer instead of failing the search.

#include "serve/api/search_endpoints.hpp"

#include <holdfast/error.hpp>
#include <holdfast/store/compose.hpp>
#include <holdfast/store/tenants.hpp>

#include "base/utf8.hpp"
#include "http/target.hpp"
#include "serve/api/endpoint_table.hpp"
#include "serve/api/entry_count.hpp"
#include "serve/api/json_writer.hpp"
#include "serve/api/store_location.hpp"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

namespace HOLDFAST_NAMESPACE::detail::serve {

namespace {

constexpr std::size_t max_hits = 50;
constexpr std::size_t max_questions = 1000;
constexpr std::size_t max_text = 2048;

class search {
 public:
  search(services& shared, const api_request& request, std::string text)
      : shared_(shared),
        client_(request.caller),
        text_(std::move(text)),
        now_(current_time(shared)),
        keys_(possible_keys(text_)) {
    out_.begin_object().member("q", text_).key("items").begin_array();
  }

  std::string run() {
    // These belong to no tenant.
    if (client_.tenant.empty()) {
      find_points();
      find_sequences();
      for (const auto& service : shared_.outboxes) find_event(service);
    }
    for (const auto& service : shared_.stores) find_in_store(service);
    out_.end_array().member("complete", is_complete_);
    out_.key("unanswered").begin_array();
    for (const auto& name : unanswered_) out_.text(name);
    return out_.end_array().end_object().take();
  }

 private:
  /// The text, and for a URL also its path with the query: the keys of URLs are made so.
  static std::vector<std::string> possible_keys(const std::string& text) {
    std::vector<std::string> keys{text};
    const bool is_url = text.starts_with("http://") || text.starts_with("https://");
    if (const auto target = is_url ? http::target::parse(text) : std::nullopt)
      keys.push_back(target->text());
    std::erase_if(keys, [](const std::string& key) {
      return count_code_points(key) > max_key_length || key.find('\0') != std::string::npos;
    });
    return keys;
  }

  /// Counts a question. Returns false if there may be no more.
  bool ask() {
    if (hits_ < max_hits && questions_ < max_questions && !limits_.is_late()) {
      ++questions_;
      return true;
    }
    is_complete_ = false;
    return false;
  }
  json_writer& begin_hit(std::string_view kind) {
    ++hits_;
    return out_.begin_object().member("kind", kind);
  }
  /// Runs a part of the search, and names what it asks if that fails.
  template <class Part>
  void guarded(const std::string& source, Part part) {
    try {
      part();
    } catch (const error&) {
      is_complete_ = false;
      unanswered_.push_back(source);
    }
  }

  void find_points() {
    if (!shared_.engine) return;
    for (const auto& point : shared_.engine->points()) {
      if (point.name.find(text_) == std::string::npos) continue;
      if (!ask()) return;
      begin_hit("point").member("point", point.name).end_object();
    }
  }

  void find_sequences() {
    if (!shared_.sequences || !ask()) return;
    guarded("sequences", [&] {
      // Names that begin with the text follow it in byte order; the text itself does not.
      auto& blocks = *shared_.sequences->blocks;
      std::vector<std::string> names;
      if (is_sequence_name(text_) && blocks.peek(text_)) names.push_back(text_);
      for (const auto& counter : blocks.list(max_hits, text_)) {
        if (counter.name.starts_with(text_)) names.push_back(counter.name);
      }
      for (const auto& name : names) {
        if (!ask()) return;
        begin_hit("sequence").member("sequence", name).end_object();
      }
    });
  }
  static bool is_sequence_name(const std::string& text) {
    try {
      check_sequence_name(text);
      return true;
    } catch (const error&) {
      return false;
    }
  }

  void find_event(const outbox_service& service) {
    if (!ask()) return;
    guarded("outbox:" + service.name, [&] {
      // Ids are UUIDs in lower case.
      std::string id = text_;
      std::ranges::transform(id, id.begin(), [](char c) {
        return c >= 'A' && c <= 'F' ? static_cast<char>(c - 'A' + 'a') : c;
      });
      std::optional<outbox_record> record;
      try {
        record = service.outbox.find(id);
      } catch (const error& e) {
        if (e.transient() || e.in_doubt()) throw;
        return;  // the text cannot be an id
      }
      if (!record) return;
      begin_hit("event")
          .member("outbox", service.name)
          .member("id", id)
          .member("state", to_string(record->state))
          .end_object();
    });
  }

  void find_in_store(const store_service& service) {
    const auto& realms = service.options.realms;
    const bool is_foreign = !client_.tenant.empty() && !realms.contains(client_.tenant);
    if (is_foreign) return;
    guarded("store:" + service.name, [&] {
      if (!client_.tenant.empty()) return find_in_realm(service, client_.tenant);
      if (realms.empty()) return find_in_realm(service, {});
      for (const auto& [tenant, prefix] : realms) find_in_realm(service, tenant);
    });
  }

  void find_in_realm(const store_service& service, const std::string& realm) {
    auto* const listing = find_name_listing(*service.store);
    if (listing == nullptr) return;
    const tenant_scope scope(realm.empty() ? std::nullopt : std::optional(realm));
    constexpr std::size_t step = 100;
    for (std::string after; ask();) {
      const auto names = listing->names(realm, step, after);
      for (const auto& name : names) {
        if (name.find(text_) != std::string::npos) report_name(service, realm, name);
        if (!find_keys(service, place(name, realm))) return;
      }
      if (names.size() < step) return;
      after = names.back();
    }
  }

  void report_name(const store_service& service, const std::string& realm,
                   const std::string& name) {
    if (!ask()) return;
    begin_hit("name").member("store", service.name).member("tenant", realm).member("name", name);
    out_.end_object();
  }

  /// Returns false if no more questions may be asked.
  bool find_keys(const store_service& service, place location) {
    if (keys_.empty()) return true;
    if (!ask()) return false;
    for (const auto& row : service.store->find_many(location, keys_)) {
      if (!row || hits_ == max_hits) continue;
      begin_hit("entry")
          .member("store", service.name)
          .member("tenant", location.realm)
          .member("name", location.name)
          .member("key", row->key)
          .member("asOf", row->as_of)
          .member("expires", row->expire_on)
          .member("tombstone", row->tombstone())
          .member("expired", row->expire_on < now_)
          .end_object();
    }
    return true;
  }

  services& shared_;
  const caller& client_;
  const std::string text_;
  const timestamp now_;
  const std::vector<std::string> keys_;
  const question_limits limits_{};
  json_writer out_{};
  std::size_t hits_ = 0;
  std::size_t questions_ = 0;
  bool is_complete_ = true;
  std::vector<std::string> unanswered_{};
};

server_response answer_search(services& shared, const api_request& request) {
  auto text = request.query("q").value_or("");
  if (text.empty() || text.size() > max_text)
    throw error(errc::invalid_argument, "must be a text of 1 to 2048 bytes", {.path = "q"});
  return json_response(200, search(shared, request, std::move(text)).run());
}

}  // namespace

void add_search_endpoints(endpoint_table& table, services& shared) {
  table.add({.method = "GET",
             .path = "/v1/search",
             .summary = "Finds an id, a key, a URL or a name",
             .roles = {role::viewer, role::operator_},
             .for_tenants = true,
             .query = {{"q", parameter_type::text, "The text, 1 to 2048 bytes"}},
             .answer = [&shared](api_request& request) { return answer_search(shared, request); }});
}

}  // namespace HOLDFAST_NAMESPACE::detail::serve
