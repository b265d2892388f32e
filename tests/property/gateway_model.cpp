#include "property/gateway_model.hpp"

#include <algorithm>
#include <array>
#include <cstdio>
#include <ctime>

namespace holdfast::test {

namespace {

using std::chrono::seconds;
using std::chrono::sys_seconds;

std::string lower(std::string text) {
  for (char& c : text) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return text;
}

std::string trim(std::string text) {
  const auto first = text.find_first_not_of(" \t");
  if (first == std::string::npos) return {};
  return text.substr(first, text.find_last_not_of(" \t") - first + 1);
}

/// All values of a name, joined.
std::optional<std::string> value_of(const message_fields& fields, std::string_view name) {
  std::optional<std::string> joined;
  for (const auto& [field, value] : fields) {
    if (field == name) joined = joined ? *joined + ", " + value : value;
  }
  return joined;
}

bool has(const message_fields& fields, std::string_view name) {
  return value_of(fields, name).has_value();
}

std::vector<std::string> elements_of(const message_fields& fields, std::string_view name) {
  std::vector<std::string> list;
  const auto text = value_of(fields, name).value_or("");
  for (std::size_t begin = 0; begin <= text.size();) {
    const auto end = std::min(text.find(',', begin), text.size());
    if (auto element = trim(text.substr(begin, end - begin)); !element.empty())
      list.push_back(std::move(element));
    begin = end + 1;
  }
  return list;
}

/// Directives of Cache-Control with their arguments.
std::map<std::string, std::optional<long>> directives_of(const message_fields& fields) {
  std::map<std::string, std::optional<long>> directives;
  for (const auto& element : elements_of(fields, "cache-control")) {
    const auto equals = element.find('=');
    auto& argument = directives[lower(element.substr(0, equals))];
    if (equals != std::string::npos) argument = std::stol(element.substr(equals + 1));
  }
  return directives;
}

std::optional<sys_seconds> date_of(const message_fields& fields, std::string_view name) {
  const auto text = value_of(fields, name);
  std::tm parts{};
  if (!text || ::strptime(text->c_str(), "%a, %d %b %Y %H:%M:%S GMT", &parts) == nullptr)
    return std::nullopt;
  return sys_seconds(seconds(::timegm(&parts)));
}

/// RFC 9111, section 4.2.1, without a heuristic.
seconds lifetime_of(const message_fields& fields, sys_seconds received) {
  const auto directives = directives_of(fields);
  for (const auto* const name : {"s-maxage", "max-age"}) {
    const auto it = directives.find(name);
    if (it != directives.end()) return seconds(it->second.value_or(0));
  }
  const auto expires = date_of(fields, "expires");
  if (!expires) return seconds(0);
  return std::max(seconds(0), *expires - date_of(fields, "date").value_or(received));
}

seconds first_age(const message_fields& fields) {
  const auto text = value_of(fields, "age");
  return text ? seconds(std::stol(*text)) : seconds(0);
}

bool is_failure_status(int status) {
  return status == 500 || status == 502 || status == 503 || status == 504;
}

bool is_keepable_status(int status) {
  constexpr std::array<int, 8> list{200, 203, 204, 300, 301, 308, 404, 410};
  return std::ranges::find(list, status) != list.end();
}

/// RFC 9111, section 3.5.
bool is_for_its_caller(const client_message& request, const message_fields& response) {
  if (!has(request.fields, "authorization") && !has(request.fields, "cookie")) return false;
  const auto directives = directives_of(response);
  return !directives.contains("public") && !directives.contains("s-maxage") &&
         !directives.contains("must-revalidate");
}

std::string strip_weak(const std::string& tag) {
  return tag.starts_with("W/") ? tag.substr(2) : tag;
}

bool client_has_it(const client_message& request, int status, const message_fields& fields) {
  const auto tag = value_of(fields, "etag");
  if (status != 200 || !tag || (request.method != "GET" && request.method != "HEAD")) return false;
  return std::ranges::any_of(
      elements_of(request.fields, "if-none-match"),
      [&](const std::string& wanted) { return strip_weak(wanted) == strip_weak(*tag); });
}

/// Fields of the upstream that the client must get unchanged.
std::string compare_fields(const message_fields& expected, const message_fields& actual,
                           const std::vector<std::string_view>& except) {
  for (const auto& [name, value] : expected) {
    if (std::ranges::find(except, name) != except.end()) continue;
    const auto given = value_of(actual, name);
    if (given != value_of(expected, name))
      return "the field " + name + " is '" + given.value_or("(missing)") + "' instead of '" +
             value_of(expected, name).value_or("") + "'";
  }
  return {};
}

std::string text_of(int number) { return std::to_string(number); }

/// The fields of the connection, which end at each hop.
const std::vector<std::string_view> hop_fields = {
    "connection", "keep-alive", "transfer-encoding", "content-length", "trailer", "te", "x-hop"};

}  // namespace

std::string gateway_model::key_of(const client_message& request) const {
  std::string key = request.normal_target;
  for (const auto& coding : elements_of(request.fields, "accept-encoding")) {
    if (lower(coding.substr(0, coding.find(';'))) == "gzip") key += "|gzip";
  }
  for (const auto& name : options_.vary) {
    const auto value = value_of(request.fields, name);
    key += "|" + (value ? "=" + *value : std::string("none"));
  }
  return key;
}

/// The kept answer that this client may get although the upstream does not confirm it; null: none.
const gateway_model::kept_answer* gateway_model::servable(const client_message& request,
                                                          sys_seconds now) const {
  const auto it = kept_.find(key_of(request));
  if (it == kept_.end()) return nullptr;
  const auto& kept = it->second;
  const auto invalidation = invalidated_.find(request.normal_target);
  if (invalidation != invalidated_.end() && kept.order < invalidation->second) return nullptr;
  if (kept.invalid || now > kept.expires || is_for_its_caller(request, kept.fields)) return nullptr;
  const auto directives = directives_of(kept.fields);
  if (directives.contains("no-cache")) return nullptr;
  const auto staleness =
      first_age(kept.fields) + (now - kept.as_of) - lifetime_of(kept.fields, kept.as_of);
  if (staleness < seconds(0)) return &kept;
  const auto asked = directives_of(request.fields);
  const auto limit = asked.find("stale-if-error");
  if (limit != asked.end() && staleness >= seconds(limit->second.value_or(0))) return nullptr;
  for (const auto* const name : {"must-revalidate", "proxy-revalidate", "s-maxage"}) {
    if (directives.contains(name)) return nullptr;
  }
  return &kept;
}

std::string gateway_model::check_forwarded(const client_message& request,
                                           const upstream_message& exchange) const {
  if (exchange.method != request.method) return "rule 2: the upstream got " + exchange.method;
  if (exchange.target != request.normal_target)
    return "rule 9: the upstream got the target " + exchange.target;
  for (const auto* const name : {"x-forwarded-host", "x-original-url", "x-rewrite-url", "te",
                                 "proxy-authorization", "keep-alive", "x-hop"}) {
    if (has(exchange.request, name)) return "rules 9, 15: the upstream got " + std::string(name);
  }
  if (!value_of(exchange.request, "via").value_or("").ends_with("1.1 holdfast") ||
      !has(exchange.request, "forwarded"))
    return "rule 15: Via or Forwarded is missing";
  const auto host = std::ranges::count_if(exchange.request,
                                          [](const auto& field) { return field.first == "host"; });
  if (host != 1) return "rule 15: Host is there " + std::to_string(host) + " times";
  const bool read = request.method == "GET" || request.method == "HEAD";
  const auto tag = value_of(exchange.request, "if-none-match");
  const auto date = value_of(exchange.request, "if-modified-since");
  if (!read || (!tag && !date)) return {};
  // Rule 10: only the validators of what is kept.
  const auto it = kept_.find(key_of(request));
  if (it == kept_.end() || it->second.invalid)
    return "rule 10: a validator of nothing that is kept";
  if (is_for_its_caller(request, it->second.fields))
    return "rule 10: a validator of an answer for others";
  if (tag && tag != value_of(it->second.fields, "etag")) return "rule 10: another entity tag";
  if (date && date != value_of(it->second.fields, "last-modified")) return "rule 10: another date";
  return {};
}

std::string gateway_model::judge(const client_message& request,
                                 const std::vector<upstream_message>& exchanges,
                                 const client_answer& answer, sys_seconds now) {
  ++order_;
  if (has(answer.fields, "x-hop")) return "rule 15: a field of the connection was passed on";
  const bool read = request.method == "GET" || request.method == "HEAD";
  if (read && directives_of(request.fields).contains("only-if-cached")) {
    if (!exchanges.empty()) return "rule 8: only-if-cached asked the upstream";
    const auto* const kept = servable(request, now);
    if (kept != nullptr) return judge_kept(request, *kept, answer, now);
    return answer.status == 504 ? "" : "rule 8: only-if-cached got " + text_of(answer.status);
  }
  if (exchanges.empty()) {
    // The upstream may close a kept connection while such a request is on its way: rule 17 forbids
    // to send it again.
    if (!read && answer.status == 502) return {};
    return "rule 1: the upstream was not asked";
  }
  for (const auto& exchange : exchanges) {
    if (auto problem = check_forwarded(request, exchange); !problem.empty()) return problem;
  }
  if (!read && exchanges.size() > 1) return "rule 17: " + request.method + " was repeated";
  const auto& last = exchanges.back();
  const bool asked_to_confirm =
      has(last.request, "if-none-match") || has(last.request, "if-modified-since");
  const bool unasked = read && last.status == 304 && !asked_to_confirm;
  if (last.end != upstream_message::ending::complete || unasked ||
      (read && is_failure_status(last.status)))
    return judge_failure(request, last, answer, now);
  return judge_live(request, last, answer, now);
}

std::string gateway_model::judge_failure(const client_message& request,
                                         const upstream_message& exchange,
                                         const client_answer& answer, sys_seconds now) {
  const bool read = request.method == "GET" || request.method == "HEAD";
  const bool with_body = request.method != "HEAD";
  const bool cut = exchange.end == upstream_message::ending::cut;
  const bool has_head = exchange.status != 0;
  const bool replaceable = read && is_failure_status(exchange.status);
  const bool committed =
      cut && has_head && with_body && !replaceable &&
      (exchange.body.size() > options_.hold || exchange.length.value_or(0) > options_.hold);
  if (committed) {
    ++counts_.cut;
    // Or: the client has what it asked about already, and got 304 with the head.
    if (client_has_it(request, exchange.status, exchange.response) && answer.status == 304)
      return {};
    return answer.complete ? "rule 13: a part was given for the whole" : "";
  }
  const auto* const kept = read ? servable(request, now) : nullptr;
  if (kept != nullptr) return judge_kept(request, *kept, answer, now);
  if (read && kept_.contains(key_of(request))) ++counts_.refused_stale;
  // A large failure is passed on while it arrives.
  if (cut && replaceable && exchange.body.size() > options_.hold && !answer.complete) {
    ++counts_.cut;
    return {};
  }
  return judge_unserved(exchange, answer, with_body);
}

std::string gateway_model::judge_unserved(const upstream_message& exchange,
                                          const client_answer& answer, bool with_body) {
  ++counts_.unserved;
  if (!answer.complete) return "the answer to a failure is cut";
  if (has(answer.fields, "holdfast-answer")) return "a kept answer that must not be given";
  if (exchange.end == upstream_message::ending::complete && is_failure_status(exchange.status)) {
    if (answer.status != exchange.status || (with_body && answer.body != exchange.body))
      return "rule 3: the upstream said " + text_of(exchange.status) + ", the client got " +
             text_of(answer.status);
    return compare_fields(exchange.response, answer.fields, hop_fields);
  }
  if (answer.status != 502 && answer.status != 504)
    return "rule 3: a broken response became " + text_of(answer.status);
  return {};
}

std::string gateway_model::judge_kept(const client_message& request, const kept_answer& kept,
                                      const client_answer& answer, sys_seconds now) {
  ++counts_.stale;
  const auto say = [&](const std::string& problem) {
    return problem + "; the kept answer is " + text_of(kept.status) + " of " +
           std::to_string((now - kept.as_of).count()) + " s ago, the client got " +
           text_of(answer.status);
  };
  if (!answer.complete) return say("a kept answer was cut");
  if (!has(answer.fields, "holdfast-answer")) return say("6.3: no Holdfast-Answer");
  const auto age = first_age(kept.fields) + (now - kept.as_of);
  const auto range = value_of(request.fields, "range");
  const bool whole_status = kept.status == 200;
  if (client_has_it(request, kept.status, kept.fields)) {
    if (answer.status != 304) return say("rule 10: no 304 from a kept answer");
  } else if (whole_status && range && request.method == "GET") {
    std::size_t first = 0;
    std::size_t last = 0;
    if (std::sscanf(range->c_str(), "bytes=%zu-%zu", &first, &last) != 2) return "bad range";
    if (first >= kept.body.size()) {
      if (answer.status != 416) return say("rule 11: no 416");
      return {};
    }
    if (answer.status != 206 || answer.body != kept.body.substr(first, last - first + 1))
      return say("rule 11: not the range");
  } else {
    if (answer.status != kept.status) return say("rule 6: another status");
    if (request.method == "HEAD" ? !answer.body.empty() : answer.body != kept.body)
      return say("rules 6, 12: another body");
    if (auto problem = compare_fields(kept.fields, answer.fields,
                                      {"connection", "keep-alive", "transfer-encoding",
                                       "content-length", "age", "x-hop", "trailer"});
        !problem.empty())
      return say("6.3: " + problem);
  }
  const auto given_age = value_of(answer.fields, "age");
  if (!given_age || std::stol(*given_age) != age.count())
    return say("6.3: Age is " + given_age.value_or("missing") + " instead of " +
               std::to_string(age.count()));
  const auto ttl = (lifetime_of(kept.fields, kept.as_of) - age).count();
  const auto status = value_of(answer.fields, "cache-status").value_or("");
  if (status.find(";ttl=" + std::to_string(ttl)) == std::string::npos)
    return say("6.3: Cache-Status is " + status + " instead of ttl=" + std::to_string(ttl));
  return {};
}

std::string gateway_model::judge_live(const client_message& request,
                                      const upstream_message& exchange, const client_answer& answer,
                                      sys_seconds now) {
  ++counts_.live;
  auto effective = exchange;
  const bool read = request.method == "GET" || request.method == "HEAD";
  const bool confirmed = read && exchange.status == 304;
  if (confirmed) {
    // RFC 9111, section 3.2: the fields of the 304 replace those that are kept.
    ++counts_.confirmed;
    const auto& kept = kept_.at(key_of(request));
    effective.status = kept.status;
    effective.body = kept.body;
    effective.length.reset();
    effective.response.clear();
    for (const auto& field : kept.fields) {
      if (!has(exchange.response, field.first) && field.first != "age")
        effective.response.push_back(field);
    }
    for (const auto& field : exchange.response) {
      if (field.first != "content-length") effective.response.push_back(field);
    }
  }
  if (!answer.complete) return "a complete response was cut";
  if (has(answer.fields, "holdfast-answer")) return "rule 1: a kept answer instead of a live one";
  if (read && client_has_it(request, effective.status, effective.response)) {
    if (answer.status != 304) return "rule 10: no 304 from a live answer";
  } else {
    if (answer.status != effective.status)
      return "the upstream said " + text_of(effective.status) + ", the client got " +
             text_of(answer.status);
    if (request.method != "HEAD" && answer.body != effective.body)
      return "the client got another body than the upstream sent";
    if (auto problem = compare_fields(effective.response, answer.fields, hop_fields);
        !problem.empty())
      return problem;
  }
  if (!read) {
    if (request.method != "OPTIONS" && exchange.status < 400) invalidate(request, exchange);
    return {};
  }
  const bool kept = keep(request, effective, now);
  const bool streamed = !confirmed && (exchange.body.size() > options_.hold ||
                                       exchange.length.value_or(0) > options_.hold);
  const bool told =
      value_of(answer.fields, "cache-status").value_or("").find(";stored") != std::string::npos;
  if (!streamed && told != kept)
    return std::string("6.3: Cache-Status says ") + (told ? "stored" : "not stored");
  return {};
}

bool gateway_model::keep(const client_message& request, const upstream_message& exchange,
                         sys_seconds now) {
  const auto directives = directives_of(exchange.response);
  if (request.method != "GET" || directives_of(request.fields).contains("no-store")) return false;
  if (!is_keepable_status(exchange.status) || is_for_its_caller(request, exchange.response))
    return false;
  auto& kept = kept_[key_of(request)];
  kept = {.as_of = now, .order = order_, .status = exchange.status, .fields = exchange.response};
  kept.body = exchange.body;
  kept.invalid = directives.contains("no-store") || directives.contains("private") ||
                 has(exchange.response, "set-cookie") ||
                 exchange.body.size() > options_.max_payload;
  for (const auto& name : elements_of(exchange.response, "vary")) {
    const auto field = lower(name);
    if (field != "accept-encoding" && !options_.vary.contains(field)) kept.invalid = true;
  }
  kept.expires = now + options_.expiry;
  if (const auto it = directives.find("stale-if-error"); it != directives.end()) {
    const auto fresh = lifetime_of(exchange.response, now) - first_age(exchange.response);
    kept.expires = now + std::min(std::max(options_.max_expiry, options_.expiry),
                                  std::max(fresh, seconds(0)) + seconds(it->second.value_or(0)));
  }
  if (kept.expires <= now) kept.invalid = true;
  return !kept.invalid;
}

/// RFC 9111, section 4.4.
void gateway_model::invalidate(const client_message& request, const upstream_message& exchange) {
  ++counts_.invalidated;
  invalidated_[request.normal_target] = order_;
  for (const auto* const name : {"location", "content-location"}) {
    if (const auto target = value_of(exchange.response, name); target && target->starts_with('/'))
      invalidated_[*target] = order_;
  }
}

}  // namespace holdfast::test
