// Looks where a text occurs: as the key of an entry, the id of an event, or in the name of a
// sequence, a point or a store's name. All databases are asked at the same time. The number of
// questions is bounded, and a database that does not answer is named in the answer instead of
// failing the search.

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
#include "serve/api/store_watch.hpp"

#include <algorithm>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace HOLDFAST_NAMESPACE::detail::serve {

namespace {

constexpr std::size_t max_hits = 50;
constexpr std::size_t max_questions = 1000;
constexpr std::size_t max_text = 2048;

/// What one source has for the text: a database, or the points.
struct source_hits {
  std::vector<std::string> hits{};  // JSON
  bool is_complete = true;
  bool is_answered = true;
};

/// Asks one source. Owns what it uses, apart from the services: it may go on when the answer was
/// sent.
class search {
 public:
  search(services& shared, std::shared_ptr<store_watch> watch, std::string tenant, std::string text)
      : shared_(shared),
        watch_(std::move(watch)),
        tenant_(std::move(tenant)),
        text_(std::move(text)),
        now_(current_time(shared)),
        keys_(possible_keys(text_)) {}

  source_hits in_points() {
    for (const auto& point : shared_.engine->points()) {
      if (point.name.find(text_) == std::string::npos) continue;
      if (!ask()) break;
      json_writer hit;
      hit.begin_object().member("kind", "point").member("point", point.name).end_object();
      add(hit);
    }
    return std::move(result_);
  }

  source_hits in_sequences(call_limit& calls) {
    return guarded([&] {
      const auto call = calls.begin();
      if (!ask()) return;
      // Names that begin with the text follow it in byte order; the text itself does not.
      auto& blocks = *shared_.sequences->blocks;
      std::vector<std::string> names;
      if (is_sequence_name(text_) && blocks.peek(text_)) names.push_back(text_);
      for (const auto& counter : blocks.list(max_hits, text_)) {
        if (counter.name.starts_with(text_)) names.push_back(counter.name);
      }
      for (const auto& name : names) {
        if (!ask()) return;
        json_writer hit;
        hit.begin_object().member("kind", "sequence").member("sequence", name).end_object();
        add(hit);
      }
    });
  }

  source_hits in_outbox(const outbox_service& service) {
    return guarded([&] {
      const auto call = service.calls->begin();
      if (!ask()) return;
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
      json_writer hit;
      hit.begin_object()
          .member("kind", "event")
          .member("outbox", service.name)
          .member("id", id)
          .member("state", to_string(record->state))
          .end_object();
      add(hit);
    });
  }

  source_hits in_store(const store_service& service) {
    return guarded([&] {
      const auto call = watch_->begin_call(service);
      const auto& realms = service.options.realms;
      if (!tenant_.empty()) return find_in_realm(service, tenant_);
      if (realms.empty()) return find_in_realm(service, {});
      for (const auto& [tenant, prefix] : realms) find_in_realm(service, tenant);
    });
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
  static bool is_sequence_name(const std::string& text) {
    try {
      check_sequence_name(text);
      return true;
    } catch (const error&) {
      return false;
    }
  }

  /// Counts a question. Returns false if there may be no more.
  bool ask() {
    if (result_.hits.size() < max_hits && questions_ < max_questions && !limits_.is_late()) {
      ++questions_;
      return true;
    }
    result_.is_complete = false;
    return false;
  }
  void add(json_writer& hit) { result_.hits.push_back(hit.take()); }
  /// Runs a part of the search, and says if that failed.
  template <class Part>
  source_hits guarded(Part part) {
    try {
      part();
    } catch (const error&) {
      result_.is_complete = false;
      result_.is_answered = false;
    }
    return std::move(result_);
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
    json_writer hit;
    hit.begin_object()
        .member("kind", "name")
        .member("store", service.name)
        .member("tenant", realm)
        .member("name", name)
        .end_object();
    add(hit);
  }

  /// Returns false if no more questions may be asked.
  bool find_keys(const store_service& service, place location) {
    if (keys_.empty()) return true;
    if (!ask()) return false;
    for (const auto& row : service.store->find_many(location, keys_)) {
      if (!row || result_.hits.size() == max_hits) continue;
      json_writer hit;
      hit.begin_object()
          .member("kind", "entry")
          .member("store", service.name)
          .member("tenant", location.realm)
          .member("name", location.name)
          .member("key", row->key)
          .member("asOf", row->as_of)
          .member("expires", row->expire_on)
          .member("tombstone", row->tombstone())
          .member("expired", row->expire_on < now_)
          .end_object();
      add(hit);
    }
    return true;
  }

  services& shared_;
  const std::shared_ptr<store_watch> watch_;
  const std::string tenant_;
  const std::string text_;
  const timestamp now_;
  const std::vector<std::string> keys_;
  const question_limits limits_{};
  std::size_t questions_ = 0;
  source_hits result_{};
};

/// What is asked, and its name in the answer.
struct search_sources {
  std::vector<std::string> names{};
  std::vector<std::function<source_hits()>> questions{};

  void add(std::string name, std::function<source_hits()> question) {
    names.push_back(std::move(name));
    questions.push_back(std::move(question));
  }
};

search_sources sources_for(services& shared, const std::shared_ptr<store_watch>& watch,
                           const std::shared_ptr<call_limit>& calls, const caller& client,
                           const std::string& text) {
  search_sources sources;
  const auto begin = [&shared, watch, tenant = client.tenant, text] {
    return search(shared, watch, tenant, text);
  };
  // Points, sequences and events belong to no tenant.
  if (client.tenant.empty()) {
    if (shared.engine) sources.add("points", [begin] { return begin().in_points(); });
    if (shared.sequences)
      sources.add("sequences", [begin, calls] { return begin().in_sequences(*calls); });
    for (const auto& service : shared.outboxes)
      sources.add("outbox:" + service.name,
                  [begin, &service] { return begin().in_outbox(service); });
  }
  for (const auto& service : shared.stores) {
    if (client.tenant.empty() || service.options.realms.contains(client.tenant))
      sources.add("store:" + service.name, [begin, &service] { return begin().in_store(service); });
  }
  return sources;
}

std::string search_json(const std::string& text, const std::vector<std::string>& names,
                        const std::vector<std::optional<source_hits>>& answers) {
  std::size_t count = 0;
  bool is_complete = true;
  json_writer out;
  out.begin_object().member("q", text).key("items").begin_array();
  for (const auto& answer : answers) {
    is_complete = is_complete && answer && answer->is_complete;
    if (!answer) continue;
    for (const auto& hit : answer->hits) {
      if (count < max_hits) out.raw(hit);
      else is_complete = false;
      ++count;
    }
  }
  out.end_array().member("complete", is_complete);
  out.key("unanswered").begin_array();
  for (std::size_t i = 0; i < names.size(); ++i) {
    const auto& answer = answers[i];
    if (!answer || !answer->is_answered) out.text(names[i]);
  }
  return out.end_array().end_object().take();
}

server_response answer_search(services& shared, const std::shared_ptr<store_watch>& watch,
                              const std::shared_ptr<call_limit>& calls,
                              const api_request& request) {
  const auto text = request.query("q").value_or("");
  if (text.empty() || text.size() > max_text)
    throw error(errc::invalid_argument, "must be a text of 1 to 2048 bytes", {.path = "q"});
  auto sources = sources_for(shared, watch, calls, request.caller, text);
  const auto answers = shared.databases->ask(std::move(sources.questions));
  return json_response(200, search_json(text, sources.names, answers));
}

}  // namespace

void add_search_endpoints(endpoint_table& table, services& shared,
                          const std::shared_ptr<store_watch>& watch) {
  const auto calls = std::make_shared<call_limit>();  // of the sequences
  table.add({.method = "GET",
             .path = "/v1/search",
             .summary = "Finds an id, a key, a URL or a name",
             .roles = {role::viewer, role::operator_},
             .for_tenants = true,
             .query = {{"q", parameter_type::text, "The text, 1 to 2048 bytes"}},
             .answer = [&shared, watch, calls](api_request& request) {
               return answer_search(shared, watch, calls, request);
             }});
}

}  // namespace HOLDFAST_NAMESPACE::detail::serve
