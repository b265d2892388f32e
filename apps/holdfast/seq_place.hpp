#pragma once

/// \file
/// Which sequence a command means, and how its counter is kept.

#include <holdfast/database.hpp>
#include <holdfast/sequence.hpp>

#include "store_place.hpp"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace holdfast::cli {

/// A whole number, negative ones too. Throws errc::invalid_argument, naming the option.
[[nodiscard]] std::int64_t read_whole(std::string_view option, const std::string& text);

/// The switches of every command that speaks to a database of sequences.
struct sequence_place : database_place {
  option create;
  option unsafe;
  option fence;
  option super_store;

  explicit sequence_place(command& at);

  [[nodiscard]] database open_database(console& io) const { return open_url(io, url.text()); }
  /// On Redis a fence must be chosen. Throws errc::invalid_argument when none is, or when one is chosen elsewhere.
  [[nodiscard]] sequence_store_options store_options(console& io) const;
  /// What is not encrypted on its way to another machine; one line for each server.
  [[nodiscard]] std::vector<std::string> plaintext_warnings(console& io) const;

 private:
  /// What goes wrong is told once, by the command; what is allowed to be unsafe is warned of.
  [[nodiscard]] database open_url(console& io, const std::string& which) const;
};

/// What a sequence's ids look like; the same wherever it is used.
struct sequence_shape {
  option name;
  option start;
  option increment;
  option max;
  option min;

  explicit sequence_shape(command& at);
  [[nodiscard]] sequence_options options(const sequence_place& place, console& io) const;
};

}  // namespace holdfast::cli
