#pragma once

/// \file
/// The only exception type of Holdfast. It answers the three questions of a caller: which kind of
/// failure is it (`code()`), can a retry succeed (`transient()`), and may the operation have
/// happened anyway (`in_doubt()`)?

#include <holdfast/version.hpp>

#include <cstdint>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>

namespace HOLDFAST_NAMESPACE {

/// The kind of a failure. There are only as many kinds as a caller can act on.
enum class errc : std::uint8_t {
  invalid_argument,  ///< the input breaks a rule that the message names
  unsupported_type,  ///< the format cannot represent values of this type
  out_of_range,      ///< the format cannot represent this number or time
  not_finite,        ///< NaN or infinity, which the format does not allow
  ill_formed_text,   ///< the text is not well-formed UTF-8
  duplicate,         ///< a value that must be unique occurs twice
  too_deep,          ///< nested deeper than the documented limit
  too_large,         ///< larger than the documented limit
  malformed,         ///< the bytes are damaged: truncated, trailing bytes, bad header
  /// A checksum, tag or key does not match: the data was changed or belongs elsewhere
  tampered,
  not_found,       ///< a name that is not registered, or an entry that does not exist
  unavailable,     ///< a server or another dependency did not answer
  timeout,         ///< no answer in time
  grammar,         ///< the database does not understand the statement
  missing_object,  ///< a table, column or index is missing or has the wrong type
  permission,      ///< refused: wrong credentials or missing privilege
  internal         ///< a defect of Holdfast; please report it
};

/// The stable name of a code, as in JSON output: `invalid_argument` and so on.
[[nodiscard]] HOLDFAST_API std::string_view to_string(errc code) noexcept;

/// Every function of Holdfast that can fail throws this. Copying never throws.
/// Thread-safety: immutable after construction.
class HOLDFAST_API error : public std::runtime_error {
 public:
  /// More about a failure. Every field is optional.
  struct details {
    std::string path{};          ///< position in the input: `args[2].items["a"][0]`
    std::string backend_code{};  ///< code of the backend: an SQLSTATE, an OpenSSL reason
    bool transient = false;      ///< a later retry can succeed
    bool in_doubt = false;       ///< the operation may have happened
    /// Set if the failure is a NULL in a NOT NULL column: the name of the column, or empty if the
    /// database does not report it.
    std::optional<std::string> not_null_column{};
  };

  error(errc code, const std::string& message);
  error(errc code, const std::string& message, details context);
  error(const error&) noexcept;
  error& operator=(const error&) noexcept;
  ~error() override;

  [[nodiscard]] errc code() const noexcept;
  [[nodiscard]] bool transient() const noexcept;
  [[nodiscard]] bool in_doubt() const noexcept;

  /// The path to the offending value, or empty. If it is not empty, `what()` begins with it.
  [[nodiscard]] const std::string& path() const noexcept;
  /// The message without the path.
  [[nodiscard]] const std::string& message() const noexcept;
  [[nodiscard]] const std::string& backend_code() const noexcept;
  /// The NOT NULL column that was NULL, if that is the failure. Empty text: the database did not
  /// report which column.
  [[nodiscard]] const std::optional<std::string>& not_null_column() const noexcept;

 private:
  struct state;
  std::shared_ptr<const state> state_;
};

}  // namespace HOLDFAST_NAMESPACE
