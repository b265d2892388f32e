// A libcurl client, protected. The upstream is a file (file:// is a protocol of libcurl), so that
// the example needs no network; a https:// URL changes nothing.

#include <holdfast/holdfast.hpp>

#include <curl/curl.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <memory>
#include <stdexcept>
#include <string>

namespace {

std::size_t append(const char* data, std::size_t size, std::size_t count, void* to) {
  static_cast<std::string*>(to)->append(data, size * count);
  return size * count;
}

/// A plain GET with libcurl.
std::string get(const std::string& url) {
  const std::unique_ptr<CURL, decltype(&curl_easy_cleanup)> curl(curl_easy_init(),
                                                                 &curl_easy_cleanup);
  std::string body;
  curl_easy_setopt(curl.get(), CURLOPT_URL, url.c_str());
  curl_easy_setopt(curl.get(), CURLOPT_FAILONERROR, 1L);
  curl_easy_setopt(curl.get(), CURLOPT_TIMEOUT_MS, 2000L);
  curl_easy_setopt(curl.get(), CURLOPT_NOSIGNAL, 1L);
  curl_easy_setopt(curl.get(), CURLOPT_WRITEFUNCTION, append);
  curl_easy_setopt(curl.get(), CURLOPT_WRITEDATA, &body);
  if (const CURLcode code = curl_easy_perform(curl.get()); code != CURLE_OK)
    throw std::runtime_error(curl_easy_strerror(code));
  return body;
}

}  // namespace

int main() {
  using namespace std::chrono_literals;
  const auto directory = std::filesystem::temp_directory_path() / "holdfast_http_client";
  std::filesystem::remove_all(directory);
  std::filesystem::create_directory(directory);
  const std::string upstream = "file://" + directory.string();
  std::ofstream(directory / "FR.json") << R"({"name":"France"})";
  curl_global_init(CURL_GLOBAL_DEFAULT);

  const std::string answers = "sqlite://" + (directory / "answers.db").string();

  // region protect
  auto db = holdfast::open(answers);  // sqlite:answers.db
  holdfast::engine engine{db.store({.create_schema = true})};

  const auto country = engine.protect(
      "country-by-code", {.expiry = 24h, .deadline = 2s},
      [upstream](const std::string& code) { return get(upstream + "/" + code + ".json"); });

  const auto print = [](const holdfast::answer<std::string>& answer) {
    std::cout << *answer << (answer.live() ? ", live\n" : ", stale\n");
  };
  print(country("FR"));
  // endregion

  std::filesystem::remove(directory / "FR.json");  // the upstream is down
  print(country("FR"));
  try {
    print(country("XX"));
  } catch (const std::exception& e) {
    std::cout << e.what() << '\n';  // never answered: libcurl's own words
  }
}
