#include "password_option.hpp"

#include <holdfast/error.hpp>

#include "base/secret.hpp"

#include <array>
#include <cstdio>

namespace holdfast::cli {

namespace {

std::string percent_encoded(std::string_view text) {
  std::string out;
  for (const char c : text) {
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
    if (plain) {
      out += c;
      continue;
    }
    std::array<char, 4> code{};
    (void)std::snprintf(code.data(), code.size(), "%%%02X", static_cast<unsigned>(static_cast<unsigned char>(c)));
    out += code.data();
  }
  return out;
}

std::string braced(std::string_view text) {
  std::string out = "{";
  for (const char c : text) out.append(c == '}' ? 2 : 1, c);
  return out + "}";
}

}  // namespace

password_option::password_option(command& at)
    : file(at.value("--password-file", "FILE", "Its first line is the password; a password in the URL may be seen by others").file()) {}

std::string password_option::read(console& io) const {
  if (!file.given()) return {};
  if (is_public_file(file.text())) io.warn("every user of this machine may read the password file; run: chmod 600 " + file.text());
  return read_password_file(file.text());
}

std::string password_option::added_to(std::string url, console& io) const {
  if (!file.given()) return url;
  const std::string password = read(io);
  if (url.starts_with("odbc:")) return url + ";PWD=" + braced(password);
  const auto authority = url.find("://");
  if (authority == std::string::npos) throw error(errc::invalid_argument, "--password-file is for a database on a server; leave it out");
  const auto begin = authority + 3;
  const auto at = url.substr(0, url.find_first_of("/?", begin)).rfind('@');
  const bool has_user = at != std::string::npos && at >= begin;
  if (has_user && url.find(':', begin) < at)
    throw error(errc::invalid_argument, "the URL has a password already; remove it, or leave --password-file out");
  return url.insert(has_user ? at : begin, ":" + percent_encoded(password) + (has_user ? "" : "@"));
}

}  // namespace holdfast::cli
