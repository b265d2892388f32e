#include "terminal/password_option.hpp"

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
    (void)std::snprintf(code.data(), code.size(), "%%%02X",
                        static_cast<unsigned>(static_cast<unsigned char>(c)));
    out += code.data();
  }
  return out;
}

/// A value of an ODBC connection string.
std::string braced(std::string_view text) {
  std::string out = "{";
  for (const char c : text) out.append(c == '}' ? 2 : 1, c);
  return out + "}";
}

}  // namespace

password_option::password_option(command& cmd)
    : file(cmd.value("--password-file", "FILE",
                     "File whose first line is the password; others may see a password in the URL")
               .file()) {}

std::string password_option::read(console& io) const {
  if (!file.is_set()) return {};
  if (detail::is_public_file(file.text()))
    io.warn("every user of this machine may read the password file; run: chmod 600 " + file.text());
  return detail::read_password_file(file.text());
}

std::string password_option::added_to(std::string url, console& io) const {
  if (!file.is_set()) return url;
  const std::string password = read(io);
  if (url.starts_with("odbc:")) return url + ";PWD=" + braced(password);
  const auto authority = url.find("://");
  if (authority == std::string::npos)
    throw error(errc::invalid_argument,
                "--password-file works only with a database server; remove it");
  const auto begin = authority + 3;
  const auto user_end = url.substr(0, url.find_first_of("/?", begin)).rfind('@');
  const bool has_user = user_end != std::string::npos && user_end >= begin;
  if (has_user && url.find(':', begin) < user_end)
    throw error(errc::invalid_argument,
                "the URL already has a password; remove it, or remove --password-file");
  return url.insert(has_user ? user_end : begin,
                    ":" + percent_encoded(password) + (has_user ? "" : "@"));
}

}  // namespace holdfast::cli
