#include <holdfast/key/failover.hpp>

#include "base/utf8.hpp"
#include "base/uuid.hpp"
#include "key/digest.hpp"
#include "key/output.hpp"
#include "key/text_writer.hpp"

#include <algorithm>
#include <mutex>
#include <set>
#include <utility>

namespace HOLDFAST_NAMESPACE::key {

using namespace holdfast::detail::key;

namespace {

constexpr const char* no_name_message = "a point needs a name";

/// As Java's Character.isWhitespace: a no-break space is not white space.
bool is_java_whitespace(std::uint32_t c) noexcept {
  return (c >= 0x09 && c <= 0x0D) || (c >= 0x1C && c <= 0x20) || c == 0x1680 ||
         (c >= 0x2000 && c <= 0x200A && c != 0x2007) || c == 0x2028 || c == 0x2029 || c == 0x205F ||
         c == 0x3000;
}

bool is_blank(std::string_view text) noexcept {
  for (std::size_t i = 0; i < text.size();) {
    const auto lead = static_cast<unsigned char>(text[i]);
    if (lead < 0x80) {
      if (!is_java_whitespace(lead)) return false;
      ++i;
    } else if ((lead & 0xF0U) == 0xE0 && i + 2 < text.size()) {
      // All white space beyond ASCII has three bytes in UTF-8.
      const auto b = static_cast<unsigned char>(text[i + 1]);
      const auto c = static_cast<unsigned char>(text[i + 2]);
      if (!is_java_whitespace(((lead & 0x0FU) << 12U) | ((b & 0x3FU) << 6U) | (c & 0x3FU)))
        return false;
      i += 3;
    } else {
      return false;
    }
  }
  return true;
}

/// A UUID of the given version as text.
std::string versioned_uuid(digest128 digest, unsigned version) {
  digest[6] = static_cast<unsigned char>((digest[6] & 0x0FU) | (version << 4U));
  digest[8] = static_cast<unsigned char>((digest[8] & 0x3FU) | 0x80U);
  return holdfast::detail::uuid_text(digest);
}

std::string sorted_csv(const point_info&, std::span<const value> args) {
  const auto* csv = args.size() == 1 ? args.front().if_is<std::string>() : nullptr;
  if (csv == nullptr)
    throw error(errc::invalid_argument, "the generator sorted_csv takes exactly one text argument",
                {.path = "args"});
  // As in Java: split(",") drops empty parts at the end; trim() removes all characters up to
  // U+0020.
  std::vector<std::string_view> parts;
  for (std::string_view rest = *csv;;) {
    const auto comma = rest.find(',');
    parts.push_back(rest.substr(0, comma));
    if (comma == std::string_view::npos) break;
    rest.remove_prefix(comma + 1);
  }
  while (parts.size() > 1 && parts.back().empty()) parts.pop_back();
  for (auto& part : parts) {
    while (!part.empty() && static_cast<unsigned char>(part.front()) <= 0x20) part.remove_prefix(1);
    while (!part.empty() && static_cast<unsigned char>(part.back()) <= 0x20) part.remove_suffix(1);
  }
  std::sort(parts.begin(), parts.end());
  std::string joined;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    if (i != 0) joined += ',';
    joined += parts[i];
  }
  return joined;
}

}  // namespace

std::string_view effective_name(const point_info& point) noexcept {
  return is_blank(point.domain) ? point.name : point.domain;
}

generators::generators() { by_name_.emplace("sorted_csv", &sorted_csv); }

// NOLINTNEXTLINE(performance-unnecessary-value-param): it is moved from
void generators::add(std::string name, generator make) {
  if (is_blank(name)) throw error(errc::invalid_argument, "a key generator needs a name");
  if (!make) throw error(errc::invalid_argument, "the key generator '" + name + "' is empty");
  const auto [entry, added] = by_name_.try_emplace(std::move(name), std::move(make));
  if (!added)
    throw error(errc::duplicate, "a key generator '" + entry->first +
                                     "' is registered already; choose another name");
}

const generator& generators::at(std::string_view name) const {
  const auto entry = by_name_.find(name);
  if (entry != by_name_.end()) return entry->second;
  std::string names;
  for (const auto& [registered, make] : by_name_) names += (names.empty() ? "" : ", ") + registered;
  throw error(errc::not_found,
              "no key generator '" + std::string(name) + "' is registered; known: " + names);
}

namespace detail {

std::string failover_raw(const failover_view& point, argument_writer write) {
  std::string raw;
  output out(raw);
  text_writer w(point.style, out, point.on_unstable);
  write(w);
  out.flush();
  return raw;
}

std::string failover_key(const failover_view& point, argument_writer write) {
  if (point.effective_name.empty()) throw error(errc::invalid_argument, no_name_message);
  if (point.hash == row_hash::blake2b)
    return failover_key_of_raw(point, failover_raw(point, write));
  md5_stream md5;
  output out = md5.sink();
  out.put(point.effective_name);
  out.put(':');
  text_writer w(point.style, out, point.on_unstable);
  write(w);
  return versioned_uuid(md5.finish(out), 3);
}

std::string failover_key_of_raw(const failover_view& point, std::string_view raw) {
  if (point.effective_name.empty()) throw error(errc::invalid_argument, no_name_message);
  if (point.hash == row_hash::blake2b) {
    std::string prefix(point.effective_name);
    prefix += ':';
    return versioned_uuid(blake2b_128(prefix, raw, point.secret), 8);
  }
  md5_stream md5;
  output out = md5.sink();
  out.put(point.effective_name);
  out.put(':');
  out.put(raw);
  return versioned_uuid(md5.finish(out), 3);
}

}  // namespace detail

struct failover_keys::state {
  std::string name;
  std::string domain;
  failover_options options;
  generator custom;
  std::function<void(std::string_view)> on_unstable;

  mutable std::mutex mutex;
  mutable std::set<std::string, std::less<>> reported_types;

  /// Calls options.on_unstable once per type. The limit bounds the memory for the types.
  void report_unstable(std::string_view type) const {
    constexpr std::size_t max_types = 1000;
    {
      const std::scoped_lock lock(mutex);
      if (reported_types.size() >= max_types || !reported_types.emplace(type).second) return;
    }
    options.on_unstable(name, type);
  }
};

failover_keys::failover_keys(const point_info& point, failover_options options,
                             const key::generators& registry) {
  if (is_blank(point.name)) throw error(errc::invalid_argument, no_name_message);
  if (!holdfast::detail::is_utf8(point.name) || !holdfast::detail::is_utf8(point.domain))
    throw error(errc::ill_formed_text, "the point's name or domain is not well-formed UTF-8");
  if (!options.secret.empty() && options.hash != row_hash::blake2b) {
    throw error(errc::invalid_argument,
                "a secret has no effect with row_hash::md5; choose row_hash::blake2b or remove it");
  }
  if (!options.secret.empty() && (options.secret.size() < 16 || options.secret.size() > 64)) {
    throw error(errc::invalid_argument, "the secret has " + std::to_string(options.secret.size()) +
                                            " bytes; it must have 16 to 64");
  }
  auto fresh = std::make_shared<state>();
  fresh->name = point.name;
  fresh->domain = point.domain;
  fresh->options = std::move(options);
  if (!fresh->options.generator.empty()) fresh->custom = registry.at(fresh->options.generator);
  if (fresh->options.on_unstable)
    fresh->on_unstable = [self = fresh.get()](std::string_view type) {
      self->report_unstable(type);
    };
  view_ = {.name = fresh->name,
           .effective_name = key::effective_name({fresh->name, fresh->domain}),
           .style = fresh->options.style,
           .hash = fresh->options.hash,
           .secret = fresh->options.secret,
           .on_unstable = &fresh->on_unstable};
  state_ = std::move(fresh);
}

bool failover_keys::has_generator() const noexcept { return static_cast<bool>(state_->custom); }

std::string failover_keys::generate(const std::vector<value>& args) const {
  auto raw = state_->custom({state_->name, state_->domain}, args);
  if (!holdfast::detail::is_utf8(raw)) {
    throw error(errc::ill_formed_text, "the key generator '" + state_->options.generator +
                                           "' returned text that is not well-formed UTF-8");
  }
  return raw;
}

std::string failover_keys::raw_of(std::span<const value> args) const {
  if (has_generator()) return generate({args.begin(), args.end()});
  return detail::failover_raw(view_, [args](writer& w) { detail::write_call(w, args); });
}

}  // namespace HOLDFAST_NAMESPACE::key
