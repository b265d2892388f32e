#pragma once

/// \file
/// The one exception type. It answers the three questions a caller has: what
/// kind of failure is it (`code()`), is it worth trying again (`transient()`),
/// and may it have happened all the same (`in_doubt()`)?

#include <holdfast/version.hpp>

#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>

namespace HOLDFAST_NAMESPACE {

/// What went wrong, in as few kinds as a caller can act on.
enum class errc : std::uint8_t {
  invalid_argument,  ///< the input breaks a rule that the message names
  unsupported_type,  ///< a value of a type that the format cannot carry
  out_of_range,      ///< a number or a time outside what the format can carry
  not_finite,        ///< NaN or infinity where the format refuses it
  ill_formed_text,   ///< text that is not well-formed UTF-8
  duplicate,         ///< something that must be unique came twice
  too_deep,          ///< nested deeper than the documented limit
  too_large,         ///< larger than the documented limit
  malformed,         ///< bytes that are not what they claim to be (truncated, trailing bytes, bad header)
  tampered,          ///< a checksum, tag or key does not match: the data was changed or belongs elsewhere
  not_found,         ///< a name that nobody registered, or an entry that is not there
  unavailable,       ///< something that this depends on did not answer
  timeout,           ///< it did not answer in time
  grammar,           ///< a statement that the database does not understand
  missing_object,    ///< a table, column or index that is not there, or not as it must be
  permission,        ///< refused: wrong credentials or no privilege
  internal           ///< a defect of Holdfast; please report it
};

/// The stable spelling of a code, as used in JSON output: `invalid_argument` and so on.
[[nodiscard]] HOLDFAST_API std::string_view to_string(errc code) noexcept;

/// Thrown by every function of Holdfast that can fail. Copying never throws.
/// Thread-safety: immutable after construction.
class HOLDFAST_API error : public std::runtime_error {
 public:
  /// What is known about a failure beyond its code and text; all optional.
  struct details {
    std::string path{};          ///< where in the input: `args[2].items["a"][0]`
    std::string backend_code{};  ///< the code of the system below: an SQLSTATE, an OpenSSL reason
    bool transient = false;      ///< trying again later can succeed
    bool in_doubt = false;       ///< the operation may have happened
  };

  error(errc code, const std::string& message);
  error(errc code, const std::string& message, details more);
  error(const error&) noexcept;
  error& operator=(const error&) noexcept;
  ~error() override;

  [[nodiscard]] errc code() const noexcept;
  [[nodiscard]] bool transient() const noexcept;
  [[nodiscard]] bool in_doubt() const noexcept;

  /// The path to the offending value, or empty. `what()` begins with it when there is one.
  [[nodiscard]] const std::string& path() const noexcept;
  /// The text without the path.
  [[nodiscard]] const std::string& message() const noexcept;
  [[nodiscard]] const std::string& backend_code() const noexcept;

 private:
  struct state;
  std::shared_ptr<const state> state_;
};

}  // namespace HOLDFAST_NAMESPACE
