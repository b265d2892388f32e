#include <holdfast/key/failover.hpp>

#include "base/utf8.hpp"
#include "key/digest.hpp"
#include "key/output.hpp"
#include "key/text_writer.hpp"

#include <algorithm>
#include <cstring>
#include <mutex>
#include <set>
#include <utility>

namespace HOLDFAST_NAMESPACE::key {

namespace {

/// What Java's Character.isWhitespace says: no-break spaces are not white.
bool is_java_whitespace(std::uint32_t c) noexcept {
  return (c >= 0x09 && c <= 0x0D) || (c >= 0x1C && c <= 0x20) || c == 0x1680 || (c >= 0x2000 && c <= 0x200A && c != 0x2007) ||
         c == 0x2028 || c == 0x2029 || c == 0x205F || c == 0x3000;
}

bool is_blank(std::string_view text) noexcept {
  for (std::size_t i = 0; i < text.size();) {
    const auto lead = static_cast<unsigned char>(text[i]);
    if (lead < 0x80) {
      if (!is_java_whitespace(lead)) return false;
      ++i;
    } else if ((lead & 0xF0U) == 0xE0 && i + 2 < text.size()) {  // every white character beyond ASCII takes three bytes
      const auto b = static_cast<unsigned char>(text[i + 1]);
      const auto c = static_cast<unsigned char>(text[i + 2]);
      if (!is_java_whitespace(((lead & 0x0FU) << 12U) | ((b & 0x3FU) << 6U) | (c & 0x3FU))) return false;
      i += 3;
    } else {
      return false;
    }
  }
  return true;
}

/// The 36 characters of a UUID with the given version.
std::string uuid_text(digest128 digest, unsigned version) {
  digest[6] = static_cast<unsigned char>((digest[6] & 0x0FU) | (version << 4U));
  digest[8] = static_cast<unsigned char>((digest[8] & 0x3FU) | 0x80U);
  char hex[32];   // NOLINT(*-avoid-c-arrays)
  char text[36];  // NOLINT(*-avoid-c-arrays)
  to_hex(digest.data(), digest.size(), hex);
  std::memcpy(text, hex, 8);
  text[8] = '-';
  std::memcpy(text + 9, hex + 8, 4);
  text[13] = '-';
  std::memcpy(text + 14, hex + 12, 4);
  text[18] = '-';
  std::memcpy(text + 19, hex + 16, 4);
  text[23] = '-';
  std::memcpy(text + 24, hex + 20, 12);
  return {text, sizeof text};
}

std::string sorted_csv(const point_info&, std::span<const value> args) {
  const auto* csv = args.size() == 1 ? args.front().if_is<std::string>() : nullptr;
  if (csv == nullptr) throw error(errc::invalid_argument, "the generator sorted_csv takes exactly one text argument", {.path = "args"});
  // As Java: split(",") drops empty parts at the end, trim() removes everything up to a space.
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

std::string_view effective_name(const point_info& point) noexcept { return is_blank(point.domain) ? point.name : point.domain; }

generators::generators() { by_name_.emplace("sorted_csv", &sorted_csv); }

void generators::add(std::string name, generator make) {  // NOLINT(performance-unnecessary-value-param): it is moved from
  if (is_blank(name)) throw error(errc::invalid_argument, "a key generator needs a name");
  if (!make) throw error(errc::invalid_argument, "the key generator '" + name + "' is empty");
  const auto [at, added] = by_name_.try_emplace(std::move(name), std::move(make));
  if (!added) throw error(errc::duplicate, "a key generator '" + at->first + "' is registered already; choose another name");
}

const generator& generators::at(std::string_view name) const {
  const auto found = by_name_.find(name);
  if (found != by_name_.end()) return found->second;
  std::string known;
  for (const auto& [each, make] : by_name_) known += (known.empty() ? "" : ", ") + each;
  throw error(errc::not_found, "no key generator '" + std::string(name) + "' is registered; known: " + known);
}

namespace detail {

std::string failover_raw(const failover_view& how, argument_writer write) {
  std::string raw;
  output out(raw);
  text_writer w(how.style, out, how.on_unstable);
  write(w);
  out.flush();
  return raw;
}

std::string failover_key(const failover_view& how, argument_writer write) {
  if (how.effective_name.empty()) throw error(errc::invalid_argument, "a point needs a name");
  if (how.hash == row_hash::blake2b) return failover_key_of_raw(how, failover_raw(how, write));
  md5_stream md5;
  output out = md5.sink();
  out.put(how.effective_name);
  out.put(':');
  text_writer w(how.style, out, how.on_unstable);
  write(w);
  return uuid_text(md5.finish(out), 3);
}

std::string failover_key_of_raw(const failover_view& how, std::string_view raw) {
  if (how.effective_name.empty()) throw error(errc::invalid_argument, "a point needs a name");
  if (how.hash == row_hash::blake2b) {
    std::string named(how.effective_name);
    named += ':';
    return uuid_text(blake2b_128(named, raw, how.secret), 8);
  }
  md5_stream md5;
  output out = md5.sink();
  out.put(how.effective_name);
  out.put(':');
  out.put(raw);
  return uuid_text(md5.finish(out), 3);
}

}  // namespace detail

struct failover_keys::state {
  std::string name;
  std::string domain;
  failover_options options;
  generator custom;
  std::function<void(std::string_view)> on_unstable;

  mutable std::mutex mutex;
  mutable std::set<std::string, std::less<>> warned_of;

  /// Once per type, and no more types than a program has.
  void warn(std::string_view type) const {
    constexpr std::size_t most = 1000;
    {
      const std::scoped_lock lock(mutex);
      if (warned_of.size() >= most || !warned_of.emplace(type).second) return;
    }
    options.on_unstable(name, type);
  }
};

failover_keys::failover_keys(const point_info& point, failover_options options, const key::generators& known) {
  if (is_blank(point.name)) throw error(errc::invalid_argument, "a point needs a name");
  if (!is_utf8(point.name) || !is_utf8(point.domain))
    throw error(errc::ill_formed_text, "the point's name or domain is not well-formed UTF-8");
  if (!options.secret.empty() && options.hash != row_hash::blake2b) {
    throw error(errc::invalid_argument, "a secret has no effect with row_hash::md5; choose row_hash::blake2b or remove it");
  }
  if (!options.secret.empty() && (options.secret.size() < 16 || options.secret.size() > 64)) {
    throw error(errc::invalid_argument, "the secret has " + std::to_string(options.secret.size()) + " bytes; it must have 16 to 64");
  }
  auto made = std::make_shared<state>();
  made->name = point.name;
  made->domain = point.domain;
  made->options = std::move(options);
  if (!made->options.generator.empty()) made->custom = known.at(made->options.generator);
  if (made->options.on_unstable) made->on_unstable = [self = made.get()](std::string_view type) { self->warn(type); };
  view_ = {made->name,           key::effective_name({made->name, made->domain}),
           made->options.style,  made->options.hash,
           made->options.secret, &made->on_unstable};
  state_ = std::move(made);
}

bool failover_keys::has_generator() const noexcept { return static_cast<bool>(state_->custom); }

std::string failover_keys::generate(const std::vector<value>& args) const {
  auto raw = state_->custom({state_->name, state_->domain}, args);
  if (!is_utf8(raw)) {
    throw error(errc::ill_formed_text, "the key generator '" + state_->options.generator + "' returned text that is not well-formed UTF-8");
  }
  return raw;
}

std::string failover_keys::raw_of(std::span<const value> args) const {
  if (has_generator()) return generate({args.begin(), args.end()});
  return detail::failover_raw(view_, [args](writer& w) { detail::write_call(w, args); });
}

}  // namespace HOLDFAST_NAMESPACE::key
