// A process that can be seen by `holdfast serve`, through the database that it uses already.
#include <holdfast/holdfast.hpp>
#include <holdfast/reporter.hpp>

#include <chrono>
#include <filesystem>
#include <iostream>
#include <string>
#include <thread>

int main() {
  using namespace std::chrono_literals;
  const auto file =
      std::filesystem::temp_directory_path() / ("reporter-" + holdfast::new_event_id() + ".db");
  {
    auto db = holdfast::open("sqlite:" + file.string());
    holdfast::engine engine{db.store({.create_schema = true})};

    // region reporter
    holdfast::reporter reporter{engine, db, {.instance = "web-2", .create_schema = true}};
    // endregion

    while (reporter.count().reports == 0) std::this_thread::sleep_for(10ms);
    for (const auto& instance : holdfast::read_instances(db))
      std::cout << instance.instance << (instance.silent() ? " is silent\n" : " reports\n");
  }
  std::filesystem::remove(file);
}
