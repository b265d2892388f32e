#include <holdfast/codec.hpp>
#include <holdfast/error.hpp>

namespace HOLDFAST_NAMESPACE::detail {

void rethrow_as_codec_error(const char* what_failed) {
  try {
    throw;
  } catch (const error&) {
    throw;
  } catch (const std::bad_alloc&) {
    throw;  // no fault of the bytes
  } catch (const std::exception& e) {
    throw error(errc::malformed, std::string(what_failed) + ": " + e.what());
  } catch (...) {
    throw error(errc::malformed, std::string(what_failed) + ": its codec threw something that is no std::exception");
  }
}

}  // namespace HOLDFAST_NAMESPACE::detail
