// Answers in a shape of their own: taken apart and put together by a splitter.

#include "unit/failover/scatter_fixture.hpp"

namespace holdfast::test {
namespace {

/// A page of countries for a traveller, by name.
struct atlas {
  std::string title;
  std::map<std::string, country> pages;
  bool operator==(const atlas&) const = default;
};
using atlas_splitter = splitter<atlas(std::vector<std::string>), country, std::string>;

class ScatterSplit : public scatter_test {
 protected:
  static atlas_splitter by_code() {
    return {
        .on_store =
            [](const atlas& whole, const codes& asked) {
              std::vector<stored_slice<country, std::string>> parts;
              for (const auto& code : asked) {
                const auto page = whole.pages.find(code);
                parts.push_back(
                    {code, page == whole.pages.end() ? std::nullopt : std::optional(page->second)});
              }
              return parts;
            },
        .on_recover =
            [](const codes& asked) {
              std::vector<std::tuple<std::string>> arguments;
              for (const auto& code : asked) arguments.emplace_back(code);
              return arguments;
            },
        .merge = [](std::vector<recovered_slice<country, std::string>> parts,
                    const codes&) -> std::optional<atlas> {
          atlas whole{"recovered", {}};
          for (auto& part : parts) {
            if (part.value)
              whole.pages[part.args ? std::get<0>(*part.args) : part.value->code] = *part.value;
            else if (part.missing)
              whole.title += " but for " + (part.args ? std::get<0>(*part.args) : std::string("?"));
          }
          return whole;
        }};
  }
  auto split(atlas_splitter splitter_,
             point_options options = {.domain = "country", .expiry = 24h}) {
    return current_engine().protect_split("atlas", options, std::move(splitter_),
                                          [this](std::vector<std::string> some) {
                                            if (down) throw outage("down");
                                            atlas whole{"fresh", {}};
                                            for (const auto& code : some) {
                                              if (world.contains(code))
                                                whole.pages[code] = world[code];
                                            }
                                            return whole;
                                          });
  }
};

TEST_F(ScatterSplit, AnAnswerIsTakenApartAndPutTogether) {
  const auto point = split(by_code());
  const auto live = point(codes{"FR", "DE", "XX"});
  EXPECT_EQ(live->title, "fresh");
  EXPECT_TRUE(live.live());
  EXPECT_EQ(puts, 1);
  EXPECT_TRUE(row("XX", "country")->tombstone());
  down = true;
  const auto a = point(codes{"DE", "XX", "FR"});
  EXPECT_TRUE(a.stale());
  EXPECT_EQ(a.complete(), completeness::yes);
  EXPECT_EQ(a->pages, live->pages);
  EXPECT_EQ(single()("FR")->name, "name of FR");
  EXPECT_EQ(numbers("atlas").asymmetric, 0U);
}

TEST_F(ScatterSplit, WhatIsMissingIsSaid) {
  const auto point = split(by_code());
  (void)point(codes{"FR"});
  down = true;
  const auto a = point(codes{"FR", "ES"});
  EXPECT_EQ(a.complete(), completeness::no);
  EXPECT_EQ(a->title, "recovered but for ES");
  EXPECT_THROW((void)point(codes{"ES"}), outage);
  EXPECT_THROW((void)point(codes{}), outage) << "nothing to put together";
}

TEST_F(ScatterSplit, DropLeavesOutWhatIsMissing) {
  const auto point = split(
      by_code(),
      {.domain = "country", .expiry = 24h, .scatter = scatter_options{.partial = partial::drop}});
  (void)point(codes{"FR"});
  down = true;
  EXPECT_EQ(point(codes{"FR", "ES"})->title, "recovered");
}

TEST_F(ScatterSplit, TwoWaysOfSplittingThatDisagreeAreFound) {
  auto splitter_ = by_code();
  splitter_.on_recover = [](const codes& asked) {
    std::vector<std::tuple<std::string>> arguments;
    for (const auto& code : asked) arguments.emplace_back("country-" + code);
    return arguments;
  };
  const auto point = split(std::move(splitter_));
  EXPECT_TRUE(point(codes{"FR"}).live());
  EXPECT_EQ(numbers("atlas").asymmetric, 1U);
  EXPECT_TRUE(logged("a splitter stores a slice that it would not recover"));
}

TEST_F(ScatterSplit, WithoutOnRecoverAManifestRemembers) {
  auto splitter_ = by_code();
  splitter_.on_recover = nullptr;
  const auto point = split(std::move(splitter_));
  const auto live = point(codes{"FR", "DE"});
  (void)point(codes{"IT"});
  down = true;
  const auto a = point(codes{"FR", "DE"});
  EXPECT_EQ(a->pages, live->pages);
  EXPECT_EQ(a.complete(), completeness::yes);
  EXPECT_THROW((void)point(codes{"FR"}), outage) << "never asked";
}

TEST_F(ScatterSplit, ASplitterThatThrowsBreaksNoLiveCall) {
  auto splitter_ = by_code();
  splitter_.on_store = [](const atlas&,
                          const codes&) -> std::vector<stored_slice<country, std::string>> {
    throw std::runtime_error("bug");
  };
  const auto point = split(std::move(splitter_));
  EXPECT_EQ(point(codes{"FR"})->title, "fresh");
  EXPECT_EQ(puts, 0);
  EXPECT_EQ(numbers("atlas").store_failed, 1U);
}

TEST_F(ScatterSplit, AMergeThatThrowsOrRefusesServesNothing) {
  (void)single()("FR");
  down = true;
  auto splitter_ = by_code();
  splitter_.merge = [](std::vector<recovered_slice<country, std::string>> parts,
                       const codes&) -> std::optional<atlas> {
    if (parts.size() > 1) throw std::runtime_error("bug");
    return std::nullopt;
  };
  const auto point = split(std::move(splitter_));
  EXPECT_THROW((void)point(codes{"FR"}), outage);
  EXPECT_EQ(numbers("atlas").hook_failed, 0U);
  EXPECT_THROW((void)point(codes{"FR", "FR"}), outage);
  EXPECT_EQ(numbers("atlas").hook_failed, 1U);
  EXPECT_EQ(status("atlas").running, 0U);
}

TEST_F(ScatterSplit, ASplitterMustBeComplete) {
  auto splitter_ = by_code();
  splitter_.merge = nullptr;
  EXPECT_THROW((void)split(std::move(splitter_)), error);
}

TEST_F(ScatterSplit, NeverThrowWithNothingIsAnEmptyAnswer) {
  const auto point = split(
      by_code(),
      {.domain = "country", .expiry = 24h, .exception_policy = exception_policy::never_throw});
  down = true;
  const auto a = point(codes{"FR"});
  EXPECT_EQ(a.source(), origin::substitute);
}

}  // namespace
}  // namespace holdfast::test
