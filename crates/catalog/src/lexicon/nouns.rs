//! Nouns and small words, each with the roles it plays.

use std::collections::HashMap;
use std::sync::LazyLock;

use foldhash::fast::FixedState;

use super::Table;

/// The roles of a word, as bits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Nouns(u64);

impl Nouns {
    /// Money: `payment`, `refund`.
    pub(crate) const MONEY: Self = Self(1);
    /// A word that makes `subscription` and `transfer` harmless: `notification`, `file`.
    pub(crate) const NOT_MONEY: Self = Self(1 << 1);
    /// What the word names is read: `status`, `history`.
    pub(crate) const REPORT: Self = Self(1 << 2);
    /// Carries code: `terraform`, `migration`, `script`.
    pub(crate) const CODE: Self = Self(1 << 3);
    /// A query language or a query.
    pub(crate) const QUERY: Self = Self(1 << 4);
    /// A database.
    pub(crate) const DATABASE: Self = Self(1 << 5);
    /// Text that is made and returned, not stored: `outline`, `summary`.
    pub(crate) const TEXT: Self = Self(1 << 6);
    /// Data that is not public.
    pub(crate) const PRIVATE: Self = Self(1 << 7);
    /// Text that others write.
    pub(crate) const UNTRUSTED: Self = Self(1 << 8);
    /// A place outside that receives what is sent.
    pub(crate) const OUTSIDE: Self = Self(1 << 9);
    /// Ends a noun phrase: prepositions and the like.
    pub(crate) const STOP: Self = Self(1 << 10);
    /// `and`, `or`, `then`.
    pub(crate) const JOIN: Self = Self(1 << 11);
    /// `not`, `never`, `without`.
    pub(crate) const NEGATION: Self = Self(1 << 12);
    /// Stands before the verb of a sentence and changes nothing: `this tool will`.
    pub(crate) const FILLER: Self = Self(1 << 13);
    /// `the`, `all`, `it`.
    pub(crate) const DETERMINER: Self = Self(1 << 14);
    /// `will`, `can`, `may`.
    pub(crate) const MODAL: Self = Self(1 << 15);
    /// Says little about what is meant: `session`, `connection`.
    pub(crate) const GENERIC: Self = Self(1 << 16);
    /// Taking it away is easily undone: `label`, `reaction`.
    pub(crate) const LIGHT: Self = Self(1 << 17);
    /// `be`, `gets`: what follows may be passive.
    pub(crate) const PASSIVE: Self = Self(1 << 18);
    /// `deleted`, `erased`.
    pub(crate) const LOST: Self = Self(1 << 19);
    /// `used`, `able`: a verb may follow after `to`.
    pub(crate) const USED: Self = Self(1 << 20);
    /// A person or a place that receives a message.
    pub(crate) const RECIPIENT: Self = Self(1 << 21);

    /// A recipe that is run: `terraform`, `dockerfile`.
    pub(crate) const RECIPE: Self = Self(1 << 22);
    /// What is traded: `stock`, `crypto`.
    pub(crate) const TRADED: Self = Self(1 << 23);
    /// An order, which buys or sells if it is about something that is traded.
    pub(crate) const ORDER: Self = Self(1 << 24);
    /// What a trader holds. Closing it sells.
    pub(crate) const POSITION: Self = Self(1 << 25);
    /// A part of a page that a pointer can select.
    pub(crate) const ELEMENT: Self = Self(1 << 26);
    /// A storage medium: formatting it is not a way to show it.
    pub(crate) const MEDIUM: Self = Self(1 << 27);
    /// What is left out of a result: `removeComments` of a page that is read.
    pub(crate) const MARKUP: Self = Self(1 << 28);
    /// A bargain that is struck: `trade`, `bid`.
    pub(crate) const DEAL: Self = Self(1 << 29);
    /// `charged`, `billed`.
    pub(crate) const CHARGED: Self = Self(1 << 30);
    /// A value that is computed from another one: `date`, `currency`.
    pub(crate) const VALUE: Self = Self(1 << 31);
    /// What is bought together: `cart`.
    pub(crate) const CART: Self = Self(1 << 32);
    /// What is asked for or planned, not done: `request`, `candidate`.
    pub(crate) const PLANNED: Self = Self(1 << 33);
    /// Asks or reports a question: `whether`, `what`.
    pub(crate) const QUESTION: Self = Self(1 << 34);
    /// Money itself, where verbs for giving back are verbs for reading too.
    pub(crate) const CASH: Self = Self(1 << 36);
    /// Begins a clause about the noun before it: `that`.
    pub(crate) const RELATIVE: Self = Self(1 << 37);
    /// `by`: a means follows.
    pub(crate) const BY: Self = Self(1 << 38);
    /// What is sent to an address that the caller chooses.
    pub(crate) const REQUEST: Self = Self(1 << 39);
    /// `undone`, `recovered`: what cannot be is lost.
    pub(crate) const UNDONE: Self = Self(1 << 35);

    /// All roles of both.
    #[must_use]
    pub(crate) fn and(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    pub(crate) fn has(self, role: Self) -> bool {
        self.0 & role.0 != 0
    }
}

const ROLES: &[(Nouns, &str)] = &[
    (
        Nouns::MONEY,
        "payment payments refund refunds charge charges payout payouts invoice invoices dispute \
         disputes subscription subscriptions money funds fund transfer transfers balance \
         chargeback transaction purchase bitcoin btc ether eth crypto cryptocurrency \
         stablecoin usdt usdc cash salary loan loans mortgage \
         платеж платежа платежей платежи платежу платёж деньги денег средств средства возврат возвраты \
         счет счёт счета счёта оплату перевод перевода наличные зарплату зарплаты",
    ),
    (
        Nouns::TRADED,
        "stock stocks share shares etf etfs crypto cryptocurrency cryptocurrencies standing option options \
         futures forex bond bonds equity equities securities trade trading spot margin market акции \
         акций",
    ),
    (Nouns::ORDER, "order orders ордер заявку"),
    (Nouns::DEAL, "trade trades bid bids bet bets wager wagers swap"),
    (Nouns::CASH, "деньги средства оплату предоплату"),
    (Nouns::CART, "cart basket"),
    (Nouns::CHARGED, "charged billed debited deducted списаны списана списано списан"),
    (
        Nouns::VALUE,
        "date dates datetime time timestamp number numbers currency currencies unit units \
         temperature timezone duration",
    ),
    (
        Nouns::PLANNED,
        "request requests candidate candidates event events job jobs orders signal signals permission \
         report reports",
    ),
    (Nouns::BY, "by"),
    (Nouns::REQUEST, "request requests"),
    (Nouns::RELATIVE, "that which who whose"),
    (Nouns::QUESTION, "what whether how why which who"),
    (
        Nouns::UNDONE,
        "undone reversed recovered restored reverted undo reverse recover отменить восстановить вернуть",
    ),
    (Nouns::POSITION, "position positions позицию позиции"),
    (Nouns::ELEMENT, "element elements dropdown checkbox radio"),
    (Nouns::MEDIUM, "disk disks drive drives partition partitions volume volumes card filesystem"),
    (
        Nouns::MARKUP,
        "script scripts comment comments style styles meta markup html tag tags whitespace ads image \
         images link links header headers footer duplicates nulls empty stopwords formatting noise \
         punctuation accents outliers",
    ),
    (
        Nouns::NOT_MONEY,
        "notification notifications event events topic topics webhook webhooks message messages \
         newsletter feed feeds channel channels file files data issue issues repository ownership \
         call chat ticket project domain image session push graphql resource pubsub email cloud \
         thread repo folder document battery",
    ),
    (
        Nouns::REPORT,
        "status info information logs log history details detail metadata schema schemas docs doc \
         documentation version versions health stats statistics metrics overview summary list \
         identity current guide help capabilities permissions inventory changelog diff level levels usage \
         forecast weather checksum progress score scores rating \
         статус список информация история",
    ),
    (
        Nouns::CODE,
        "terraform migration migrations script scripts playbook dockerfile javascript python code \
         shell bash powershell snippet bytecode program programs код кода скрипт скрипта команду \
         команды алгоритм",
    ),
    (Nouns::RECIPE, "terraform migration migrations playbook dockerfile makefile script scripts"),
    (
        Nouns::QUERY,
        "query queries sql cypher statement statements select graphql jql запрос запроса запросы \
         запросов",
    ),
    (Nouns::DATABASE, "database databases db sql sqlite базе базы"),
    (
        Nouns::TEXT,
        "plan plans outline outlines summary summaries report reports sample samples suggestion \
         suggestions explanation explanations preview estimate description answer insights advice",
    ),
    (
        Nouns::PRIVATE,
        "file files document documents message messages email emails mail inbox database databases db \
         sql query queries record records row rows table tables user users contact contacts customer \
         customers calendar log logs secret secrets key keys credential credentials password passwords \
         token tokens history repository repositories repo repos code account accounts invoice invoices \
         transaction transactions note notes memory memories screenshot clipboard chat chats drive \
         disk directory folder filesystem profile profiles employee employees patient salary order \
         orders payment payments connection env environment variables config configuration page \
         pages workspace channel channels cookies session sessions infobase cell object objects \
         файл файлы файла документ документы сообщения данные данных базы справочник остатки контакты \
         пользователей журнал",
    ),
    (
        Nouns::UNTRUSTED,
        "url urls web website websites internet html page pages site sites online rss feed feeds email \
         emails inbox issue issues comment comments review reviews ticket tickets discussion \
         discussions thread threads message messages replies chat chats channel channels tweet tweets \
         post posts article articles news crawl scrape browser webpage notes pull письма сообщения \
         сайт страницу интернет",
    ),
    (
        Nouns::OUTSIDE,
        "url urls webhook webhooks http email emails sms message messages slack issue issues comment \
         comments gist gists pull channel channels tweet post posts registry api web internet \
         endpoint request requests письмо сообщение",
    ),
    (
        Nouns::STOP,
        "from for to in on of by with using via into at that which when if as about across against \
         within through under per based where while after before during until unless over between \
         including containing so because onto upon toward towards для из по в на с со во к ко о об от до у при под между через если \
         когда",
    ),
    (Nouns::JOIN, "and or then plus also и или затем потом также"),
    (
        Nouns::NEGATION,
        "not never no nothing without cannot can't don't doesn't won't isn't dont doesnt cant instead rather \
         nor neither non не без нельзя никогда вместо",
    ),
    (
        Nouns::FILLER,
        "this tool it function method tools you will can may must shall use used using allows allow \
         lets let helps help enables automatically safely permanently irreversibly immediately \
         optionally please simply quickly directly programmatically interactively completely \
         irrevocably silently recursively also to i we agent atomically bulk batch securely \
         dangerous warning caution warn note important инструмент этот позволяет можно может \
         автоматически безвозвратно полностью окончательно функция метод",
    ),
    (
        Nouns::DETERMINER,
        "the a an all any every each it them its their your this these those one some another \
         все всё каждый",
    ),
    (Nouns::MODAL, "will can may must shall would could might может будет будут"),
    (Nouns::GENERIC, "session connection it this current active resource item"),
    (
        Nouns::LIGHT,
        "label labels reaction reactions member members tag tags star stars assignee assignees \
         reviewer reviewers like likes follower pin bookmark filter password zoom view form counter \
         highlight selection viewport",
    ),
    (Nouns::PASSIVE, "be gets get being become been"),
    (
        Nouns::LOST,
        "deleted removed erased wiped destroyed purged dropped truncated overwritten lost удалены \
         удалена удален удалено удалён стёрты потеряны утеряны утрачены",
    ),
    (
        Nouns::USED,
        "used able allows allow you tool function users agents ability way designed capable",
    ),
    (
        Nouns::RECIPIENT,
        "to recipient recipients email emails phone channel chat webhook cc bcc mailto address \
         addressee subscriber audience",
    ),
];

static NOUNS: LazyLock<Table<Nouns>> = LazyLock::new(|| {
    let mut table: Table<Nouns> = HashMap::with_hasher(FixedState::default());
    for (role, words) in ROLES {
        for word in words.split_whitespace() {
            table.entry(word).or_default().0 |= role.0;
        }
    }
    table
});

/// The roles of a word in lower case.
#[inline]
pub(crate) fn nouns(word: &str) -> Nouns {
    NOUNS.get(word).copied().unwrap_or_default()
}
