// A library that acts when it is loaded, as any library can: it creates the file that
// EVIL_DRIVER_MARK names.

#include <cstdio>
#include <cstdlib>

namespace {

struct payload {
  payload() {
    const char* const file = std::getenv("EVIL_DRIVER_MARK");
    if (file == nullptr) return;
    if (std::FILE* const mark = std::fopen(file, "w"); mark != nullptr) (void)std::fclose(mark);
  }
};
const payload run_when_loaded;

}  // namespace
