// What reaches a receiver: events as lines of JSON, and as CloudEvents for an HTTP client of your
// choice.
#include <holdfast/holdfast.hpp>

#include <filesystem>
#include <fstream>
#include <iostream>
#include <string>

int main() {
  const auto file =
      std::filesystem::temp_directory_path() / ("relay-" + holdfast::new_event_id() + ".jsonl");
  auto outbox = holdfast::open("memory:").outbox();
  outbox.publish({.type = "ticket.created",
                  .key = "ticket-7",
                  .payload = R"({"seat":12})",
                  .id = "018f2b6e-5c1e-7000-8000-000000000001"});
  outbox.publish({.type = "ticket.paid",
                  .key = "ticket-7",
                  .payload = R"({"euro":30})",
                  .id = "018f2b6e-5c1e-7000-8000-000000000002"});

  // region types
  holdfast::worker worker{outbox};
  worker.handle("ticket.created", holdfast::relay::json_lines(file.string()));
  worker.handle("ticket.paid", [](const holdfast::delivery& d) {
    const auto headers = holdfast::relay::cloud_event_headers(d, "/tickets");
    for (const char* name : {"Idempotency-Key", "ce-type", "ce-source", "ce-partitionkey"})
      std::cout << name << ": " << headers.at(name) << "\n";
    std::cout << d.event().payload << "\n";
    return holdfast::relay::outcome_of_status(204);  // what your HTTP client was answered
  });
  worker.run_until_empty();
  // endregion

  std::string line;
  std::getline(std::ifstream(file), line);
  // The time of publishing, the sequence and the fence change; the rest does not.
  std::cout << line.substr(0, line.find(",\"createdAt\"")) << "...\n";
  std::filesystem::remove(file);
}
