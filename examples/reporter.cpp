// A process that can be seen by `holdfast serve`, through the database that it uses already.
#include <holdfast/holdfast.hpp>
#include <holdfast/reporter.hpp>

#include <nlohmann/json.hpp>

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

    const auto price = engine.protect("price", [](int item) { return std::to_string(item); });
    (void)price(7);
    // region on_command
    const auto drill = [&engine](const holdfast::instance_command& command) {
      if (command.kind != "drill") return;
      const auto body = nlohmann::json::parse(command.body);
      (void)engine.drill(
          body.at("point").get<std::string>(),
          {.part = body.value("part", 0.01), .length = body.value("minutes", 5) * 1min});
    };
    holdfast::reporter drilling{
        engine, db, {.every = 1s, .instance = "web-3", .on_command = drill}};
    // endregion

    // region send
    holdfast::send_instance_command(
        db, {.id = "drill-1", .instance = "web-3", .kind = "drill", .body = R"({"point":"price"})"},
        1min);
    // endregion
    while (drilling.count().commands == 0) std::this_thread::sleep_for(10ms);
    for (const auto& running : engine.drills())
      std::cout << "drill of " << running.point << ": " << running.options.part * 100
                << " % of the calls\n";
  }
  std::filesystem::remove(file);
}
