#include <holdfast/codec.hpp>
#include <holdfast/error.hpp>

#include <exception>
#include <new>
#include <string>

namespace HOLDFAST_NAMESPACE::detail {

void rethrow_as_codec_error(const char* problem) {
  try {
    throw;
  } catch (const error&) {
    throw;
  } catch (const std::bad_alloc&) {
    throw;  // the bytes are not at fault
  } catch (const std::exception& e) {
    throw error(errc::malformed, std::string(problem) + ": " + e.what());
  } catch (...) {
    throw error(errc::malformed, std::string(problem) +
                                     ": the codec threw an exception that is not a std::exception");
  }
}

}  // namespace HOLDFAST_NAMESPACE::detail
