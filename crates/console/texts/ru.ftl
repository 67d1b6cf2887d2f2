# Frame
skip = Перейти к содержимому
copied = Скопировано
nav-label = Главное меню
nav-overview = Обзор
nav-approvals = Подтверждения
nav-servers = Серверы
nav-tools = Инструменты
nav-policies = Политики
nav-grants = Доступы
nav-people = Люди
nav-sessions = Сеансы
nav-audit = Аудит
nav-catalog = Каталог
mode-label = Режим
mode-what = Кто может вызывать и применяются ли правила
mode-local = локальный: без токена
mode-shadow = наблюдение
mode-some-shadow = { $n ->
    [one] { $n } политика наблюдает
    [few] { $n } политики наблюдают
   *[many] { $n } политик наблюдают
}
mode-enforce = правила действуют
mode-closed = закрыт: нет доступов
freeze-all = Заморозить всё
unfreeze-all = Разморозить всё
unfreeze = Разморозить
freeze = Заморозить
frozen = заморожено
menu-person = Учётная запись
language = Язык
theme = Тема
theme-light = Светлая
theme-dark = Тёмная
sign-out = Выйти
banner-frozen-all = Всё заморожено: агенты не могут ничего вызвать.
banner-frozen-grant = Доступ «{ $value }» заморожен.
banner-frozen-server = Сервер «{ $value }» заморожен.
banner-frozen-session = Сеанс «{ $value }» заморожен.
banner-reload = Последнее изменение toolgate.yaml отклонено; действует прежняя конфигурация.
banner-not-recorded = Аудит выключен: вызовы не записываются.
banner-broken-policy = Политику «{ $value }» нельзя применить; её доступам запрещено всё.
banner-conflict = Две программы используют id сеанса «{ $value }».
banner-no-policy = У доступа «{ $value }» нет политики, поэтому каждый вызов запрещён.

# Sign-in
login-title = Вход
login-what = Введите личный токен. Токен первого администратора лежит в файле admin.token папки данных.
login-token = Токен
login-button = Войти
login-hint = На машине с toolgate можно войти командой:
login-wrong = Токен не подходит. Возможно, он отозван, заменён или истёк.
login-as = Войти как { $value }
login-link-what = Ссылка действует один раз. Подтвердите, что открыли её сами.
login-link-ended = Ссылка больше не действует. Она работает один раз и 60 секунд.
again-title = Открываем страницу
again-open = Открыть
problem-signed-out = Вы вышли
problem-forged = Форма не принята; откройте страницу заново и повторите
problem-too-large = Запрос слишком большой или слишком медленный
problem-not-found = Такой страницы нет
problem-refused = Не выполнено
problem-internal = Ошибка в toolgate; пожалуйста, сообщите о ней

# Words
all = все
none = нет
never = никогда
never-used = не использовался
ago = { $value } назад
active = действует
revoked = отозван
expired = истёк
file = файл
file-what = Задано в toolgate.yaml; меняйте там
built-in = встроенная
required = обязательно
you = (вы)
create = Создать
save = Сохранить
cancel = Отмена
remove = Удалить
test = Проверить
rotate = Заменить токен
revoke = Отозвать
restore = Восстановить
attach = Назначить
copy = Копировать
search = Поиск
filter = Отобрать
filter-reset = Сбросить
actions = Действия
approve = Подтвердить
deny = Запретить
rotate-sure = Заменить токен «{ $value }»? Старый перестанет работать сразу.
revoke-sure = Отозвать «{ $value }»? Токен перестанет работать сразу.
span-seconds = { $n } с
span-minutes = { $n } мин
span-hours = { $n } ч

# Fields
field-name = Имя
field-label = Метка
field-policy = Политика
field-policies = Политики
field-hash = Хеш содержания
field-identity = От имени
field-person = Человек
field-client = Клиент
field-via = Через
field-session = Сеанс
field-class = Класс риска
field-level = Уровень
field-approval = Подтверждение
field-grant = Доступ
field-server = Сервер
field-tool = Инструмент
field-state = Состояние
field-decision = Решение
field-rule = Правило
field-code = Код ошибки
field-outcome = Итог
field-effect = Эффект
field-counters = Счётчики
field-argument-names = Имена аргументов
field-arguments = Аргументы
field-upstream = Время сервера
field-total = Всё время
field-message = Сообщение
field-count = Количество
field-time = Время
field-kind = Вид
field-who = Кто
field-what = Что
field-detail = Подробности
field-roles = Роли
field-groups = Группы
field-expires = Истекает
field-last-use = Последний вызов
field-created = Создано
field-version = Версия
field-base = База
field-host = Узел
field-queue = Очередь
field-in-flight = В работе
field-last-answer = Последний ответ
field-agent-sessions = Сеансы агентов
field-open-calls = Вызовы в работе
field-uptime = Работает
field-fingerprint = Отпечаток
field-digest = Дайджест
all-classes = Все классы
all-servers = Все серверы
all-states = Все состояния
all-kinds = Все виды
all-decisions = Все решения

# Risk
class-read = чтение
class-write = запись
class-execute = выполнение
class-destructive = разрушение
class-financial = деньги
class-other = прочее
class-read-what = Возвращает данные и ничего не меняет.
class-write-what = Создаёт или меняет что-либо.
class-execute-what = Выполняет код, команды или запросы.
class-destructive-what = Удаляет безвозвратно.
class-financial-what = Двигает деньги или создаёт обязанность платить.
class-other-what = Из описания неясно, что он делает.
level-low = низкий риск
level-medium = средний риск
level-high = высокий риск
level-critical = критический риск
label-reads-private = читает личные данные
label-ingests-untrusted = получает чужой текст
label-sends-out = отправляет данные наружу
effect-allow = разрешено
effect-hold = спрашивает человека
effect-deny = запрещено
effect-hide = скрыто
decision-allow = разрешено
decision-deny = запрещено
decision-hide = скрыто
decision-hold = ждёт человека
decision-shadow-deny = было бы запрещено
decision-shadow-hold = ждало бы человека
kind-intent = вызов
kind-outcome = итог
kind-denied = отказ
kind-held = ожидание
kind-approval = подтверждение
kind-refused = отказ во входе
kind-admin = изменение
kind-policy = политика
kind-session = сеанс
kind-drift = смена описания
story-intent = Вызов допущен
story-outcome = Вызов завершён
story-denied = Вызов отклонён; ничего не отправлено
story-held = Вызов ждёт человека
story-approval = Человек ответил
story-refused = Во входе отказано
story-admin = Человек что-то изменил
story-policy = Политика вступила в силу
story-session = Событие сеанса
story-drift = Описание изменилось
state-ready = готов
state-starting = запускается
state-failed = сбой
state-backing_off = пауза после сбоя
state-never_used = ещё не использовался
session-active = на связи
session-disconnected = нет связи
session-anonymous = не представился
session-conflict = две программы с одним id
tool-listed = в списке
tool-quarantined = в карантине
approval-pending = ждёт
approval-approved = подтверждено
approval-denied = запрещено
approval-expired = истекло
approval-consumed = использовано

# Overview
overview-state = Состояние
overview-cut = Вызовов больше, чем читает эта страница: на графиках последние 8000 строк.
tile-calls = Вызовы
tile-last-hour = за последний час
tile-denied = Отказы
tile-denied-show = Показать отказы
tile-pending = Ждут подтверждения
tile-pending-show = Открыть список
tile-audit = Строк аудита
tile-checkpoint = подписано до { $value },
tile-no-checkpoint = ещё не подписано
chart-calls = Вызовы в минуту
chart-calls-what = Вызовы в минуту за последний час по решениям; шкала до { $n }
chart-empty = За последний час вызовов не было. Подключите агента к
chart-latency = Задержка
chart-latency-empty = За последний час ни один вызов не завершился. Время появится с первым ответом.
chart-hour-ago = 60 мин назад
chart-now = сейчас
top-tools = Частые инструменты
top-tools-empty = Здесь появятся инструменты, которые вызывают чаще всего.
top-denials = Частые отказы
top-denials-empty = За последний час отказов не было. Отказы по политике появятся здесь.
policy-broken = нельзя применить
overview-no-sessions = Ни одна программа не подключилась.

# Servers
servers-empty = Серверов пока нет.
servers-empty-long = Серверов пока нет. Добавьте сервер ниже или выполните toolgate import с конфигурацией вашего MCP-клиента.
servers-add = Добавить сервер
servers-command = Команда, URL или запись из mcpServers
servers-look = Посмотреть перед добавлением
servers-confirm = Добавить этот сервер
servers-preview = Добавить сервер «{ $value }»?
servers-secrets = Секреты только ссылками:
servers-remove-sure = Удалить сервер «{ $value }»?
servers-not-listed = список ещё не получен; проверьте сервер
servers-no-command = укажите команду или URL
servers-bad-entry = это не объект JSON
servers-bad-quotes = кавычка не закрыта

# Tools
tools-search = Имя инструмента или сервера
tools-empty = Инструментов пока нет: сначала нужен список сервера.
tools-no-match = Ничего не найдено.
tools-unlisted = Список ещё не получен: { $value }
tool-what = Что он делает
tool-no-description = Сервер не дал описания. Судите по параметрам или запретите инструмент.
tool-parameters = Параметры
tool-why = Риск и почему
tool-confidence = уверенность { $value }
tool-loop = Что может пойти не так
tool-recommended = Рекомендуемое правило
tool-apply = Применить к политике…
tool-who-quarantined = Никто, пока описание в карантине. После одобрения:
tool-who = Кто может вызвать сейчас
tool-no-callers = Доступов нет.
tool-recent = Последние вызовы
tool-no-calls = Его ещё не вызывали. Подключите агента или вызовите его выше.
tool-definition = Описание полностью
quarantine-what = Описание новое или изменилось после одобрения. Агенты его не видят и не могут вызвать.
quarantine-approve = Одобрить это описание
try-title = Попробовать
try-what = Вызов проходит политику доступа, расходует его счётчики и записывается с вашим именем.
try-as = С правами доступа
try-no-grant = Нет доступа, с которым вызвать.
try-call = Вызвать
try-raw = Исходные сообщения
try-request = Запрос
try-answer = Ответ
try-allowed = разрешено
try-tool-error = инструмент сообщил об ошибке
try-not-json = значение «{ $value }» — не JSON

# Grants and people
grants-empty = Доступов пока нет. Доступ — это ключ одного агента; первый доступ завершает локальный режим.
grants-create = Создать доступ
grants-policy-none = нет: запрещено всё
grants-servers = Доступные серверы (не выбрано — все)
grants-no-policy = Нет политики: запрещено всё.
grants-no-tools = Известных инструментов в его досягаемости нет. Добавьте сервер или проверьте имеющийся.
grants-at-most = Самое большее, что может агент с ним:
grants-enforced = После включения:
grants-shadow = Политика в режиме наблюдения: вызовы записываются и проходят, что бы ни говорили правила.
people-create = Добавить человека
people-only-admin = Дайте каждому свой токен, чтобы аудит называл, кто что сделал.
role-viewer = наблюдатель
role-approver = подтверждающий
role-policy-manager = редактор политик
role-admin = администратор
role-viewer-what = смотрит
role-approver-what = ещё и подтверждает вызовы
role-policy-manager-what = ещё и меняет и назначает политики
role-admin-what = может всё
token-title = Новый токен
token-of = Токен «{ $value }»
token-once = Токен показан один раз. Скопируйте его сейчас.
token-kept = Готово, скопировано
token-clients = Готово для вставки

# Sessions
sessions-empty = Ни одна программа не подключилась. Программы подключаются к этому адресу:
sessions-address = Программы подключаются к
sessions-why = Почему не видно моей базы?
sessions-why-1 = Программа не подключилась: сравните адрес в её настройках с
sessions-why-2 = Подключилась, но не представилась: тогда она выше в списке как «не представился». Обновите расширение.
sessions-why-3 = Токен неверен: в аудите есть строки вида «сеанс» с причиной.
sessions-why-4 = Доступ агента её не охватывает: посмотрите «Сеансы» в карточке доступа.
sessions-why-5 = Политика скрывает или запрещает её инструменты: откройте инструмент и посмотрите «Кто может вызвать сейчас».

# Audit
audit-empty = Пока ничего не записано. Вызовы, отказы и изменения появятся здесь сразу.
audit-no-match = По этим условиям строк нет.
audit-older = Более старые
audit-story = (история вызова)
call-hashes = Хеши строк
audit-proof = Доказательство
audit-proof-what = Каждая строка содержит хеш предыдущей, а контрольные точки подписаны. В экспорт попадают строки по фильтрам выше.
audit-verify = Проверить аудит
audit-export = Экспорт
audit-intact = Аудит цел: строк { $value }; подписано до строки { $signed }.
audit-broken = аудит повреждён в строке { $value }; причину покажет `toolgate audit verify`

# Policies
policies-create = Создать политику
policies-create-what = Новая политика начинается как копия «recommended».
policy-no-grant = Эту политику не использует ни один доступ. Назначьте её на странице «Доступы».
policy-grants = Используют: { $value }
policy-of-file = Эта политика задана в toolgate.yaml или своём файле и меняется там. Здесь можно попробовать изменения и сохранить под другим именем.
policy-built-in = Эта политика встроенная. Здесь можно попробовать изменения и сохранить под другим именем.
policy-document = Документ
policy-save-as = Сохранить как…
policy-save-copy = Сохранить копию
policy-versions = Версии
policy-compare = Сравнить с действующей
policy-at-line = Строка { $n }:
policy-rollback = Вернуть
policy-remove-sure = Удалить политику «{ $value }»?
draft-problems = Замечания
draft-invalid = Документ нельзя сохранить
draft-warnings = Предупреждения
draft-changes = Что изменится
draft-before = Сейчас
draft-after = С черновиком
draft-resets = Счётчики начнутся заново: { $value }
builder-title = Конструктор
builder-classes = По классу риска
builder-tools = По инструменту
builder-sentences = Словами
builder-line = строка { $n }
builder-needs-script = Для выбора здесь нужен JavaScript. Без него правьте документ.
pick-allow = Разрешить
pick-limit = Ограничить
pick-ask = Спросить
pick-deny = Запретить
pick-hide = Скрыть
pick-inherit = Убрать это правило
condition = Условие
condition-add = Добавить условие
condition-edit = Изменить
condition-nested = изменяется в документе
condition-list = Что происходит
condition-deny-if = Запретить, если
condition-approve-if = Спросить, если
condition-require = Только если
condition-path = Поле
condition-op = Сравнение
condition-exists = указано (true или false)
condition-value = Значение
condition-apply = Применить
pick-max = Наибольшее число вызовов { $value }
pick-window = Период для { $value }
per-minute = в минуту
per-hour = в час
per-day = в день
pick-sum = сумма { $value }
per-other = за { $value }

# Sentences
say-default-allow = Инструменты, которых нет в правилах, разрешены.
say-default-deny = Инструменты, которых нет в правилах, запрещены.
say-shadow = Правила только записываются: проходит любой вызов.
say-hidden = Скрыто от агентов: { $value }.
say-all-tools = Любой инструмент
say-class = Инструменты класса «{ $value }»
say-may = { $value }: вызов разрешён
say-denied = { $value }: вызов запрещён
say-hidden-one = { $value }: скрыто от агентов
say-held = { $value }: вызов ждёт человека
say-sum = в сумме не больше { $value } по { $path } { $window }
say-require = только если { $value }
say-deny-if = запрещено, если { $value }
say-approve-if = решает человек, если { $value }
say-concurrency = одновременно не больше { $value }
say-repeat = тот же вызов не чаще одного раза за { $value }
say-owned = только со своими идентификаторами
say-shadow-entry = это правило только записывается
say-others = а также: { $value }
say-loop = Один и тот же вызов агент может повторить не больше { $value } раз { $window }.
say-or = { " или " }
say-and = { " и " }
say-not = не ({ $value })
say-always = всегда
op-exists = указано: { $value }
op-missing = не указано: { $value }
op-in = входит в
op-not-in = не входит в
op-contains = содержит
op-starts-with = начинается с
op-ends-with = заканчивается на
op-regex = содержит совпадение с
op-matches = соответствует
op-host-in = имеет хост из
op-owned = принадлежит вызывающему как
window-minute = в минуту
window-hour = в час
window-day = в день
window-seconds = за { $value } с

# Approvals
approvals-empty = Ничего не ждёт. Здесь появятся вызовы, которые политика задержала.
approvals-earlier = Раньше
approval-asks = Доступ «{ $value }» хочет вызвать. Задержано правилом
approval-left = осталось { $value }
approval-reason = Причина, её увидит агент
approval-erased = Аргументы стёрты, когда подтверждение завершилось.

# Catalogue
catalog-search = Сервер, инструмент, пакет или вид атаки
catalog-patterns = Приёмы атак
catalog-no-match = Ничего не найдено.
catalog-stops = Что останавливает:
catalog-classes = Классы риска
catalog-recommended = Политика «recommended»
attack-confused-deputy = Чужими руками
attack-confused-deputy-what = Инструмент действует с правами, которых нет у вызывающего, и чужая инструкция ими пользуется.
attack-confused-deputy-stops = Отдельный доступ на агента с минимумом серверов и условия на аргументы.
attack-runaway-loop = Бесконечный цикл
attack-runaway-loop-what = Агент без конца повторяет вызов.
attack-runaway-loop-stops = Ограничения, правило loop и отказы, которые велят модели остановиться.
attack-rug-pull = Подмена описания
attack-rug-pull-what = Описание меняется после одобрения.
attack-rug-pull-stops = Закреплённые описания: изменённое уходит в карантин, пока его не одобрит человек.
attack-tool-poisoning = Отравленное описание
attack-tool-poisoning-what = Описание велит модели сделать что-то другое.
attack-tool-poisoning-stops = Признаки в оценке риска, запрет по умолчанию, подтверждения для опасных классов.
attack-shadowing = Похожее имя
attack-shadowing-what = Два сервера предлагают одинаковое или похожее имя.
attack-shadowing-stops = Имена несут префикс сервера, а похожие имена отмечаются.
attack-lethal-trifecta = Опасная тройка
attack-lethal-trifecta-what = Личные данные, чужой текст и выход наружу встречаются у одного агента.
attack-lethal-trifecta-stops = Дайте агенту не больше двух из трёх или спрашивайте человека перед отправкой.
attack-hidden-text = Скрытый текст
attack-hidden-text-what = В описании есть символы, которых человек не видит.
attack-hidden-text-stops = Скрытые символы везде показаны, а такие описания уходят в карантин.
attack-schema-smuggling = Контрабанда в аргументах
attack-schema-smuggling-what = Аргументы несут то, чего нет в схеме.
attack-schema-smuggling-stops = Неоднозначный JSON отклоняется, а правила читают ровно то, что читает сервер.
attack-closing-what-is-not-yours = Закрыть чужое
attack-closing-what-is-not-yours-what = Вызывающий завершает чужой сеанс или задание.
attack-closing-what-is-not-yours-stops = Правила владения: только идентификаторы, полученные тем же доступом.

# Done
done-frozen = Заморожено. Вызовы отклоняются с этого момента.
done-unfrozen = Заморозка снята.
done-server-added = Сервер «{ $value }» добавлен.
done-server-removed = Сервер «{ $value }» удалён.
done-server-answered = Сервер ответил. Инструментов у { $value }
done-server-failed = Сервер не ответил. { $value }
done-revoked = Отозвано. Токен больше не работает.
done-restored = Восстановлено.
done-attached = Политика назначена.
done-policy-created = Политика «{ $value }» создана. Измените и сохраните её.
done-policy-saved = Политика «{ $value }» сохранена и действует.
done-policy-removed = Политика удалена.
done-rolled-back = Снова действует документ версии { $value }.
done-definition-approved = Описание «{ $value }» одобрено.
done-approved = Подтверждено.
done-denied = Запрещено.

# Signals
signal-verb = `{ $value }` — глагол класса «{ $class }»
signal-negated = `{ $value }` стоит с отрицанием
signal-vague = действие `{ $value }` зависит от дополнения
signal-money = `{ $value }`, и речь о деньгах
signal-runs-code = `{ $value }`, и речь о коде
signal-any-query = выполняет запросы и не заявляет, что они только читают
signal-read-query = заявляет, что запросы только читают
signal-lost = заявляет, что данные теряются
signal-report = назван по тому, что сообщает
signal-no-description = описания нет
signal-no-verb = знакомого глагола нет
signal-disagree = имя и описание говорят о разных классах
signal-asks = просит, чтобы сначала решил человек
signal-path = принимает путь в файловой системе
signal-url = принимает URL
signal-amount = принимает сумму денег
signal-code = принимает код или команду
signal-query = принимает запрос
signal-recipient = принимает получателя
signal-operation = может выбрать операцию класса «{ $value }»
signal-switch = переключатель класса «{ $value }»
signal-declared-destructive = сам заявляет, что разрушает
signal-declared-writing = сам заявляет, что не только читает
signal-declared-read-only = сам заявляет, что только читает; класс это не понижает
signal-curated = известный инструмент программ 1С, класс «{ $value }»
signal-configured = класс «{ $value }» задан в настройках
place-name = имя
place-title = заголовок
place-description = описание
place-argument = аргумент { $value }
place-annotations = аннотации
place-toolgate = toolgate
hazard-read = `{ $tool }` сервера { $server } показывает агенту всё, что { $count ->
        [1] выбирает
       *[other] выбирают
    } { $arguments }, в том числе не нужное для задачи.
hazard-read-without-arguments = У `{ $tool }` сервера { $server } нет аргументов, поэтому политика может только разрешить или запретить всё, что он показывает.
hazard-write = Неверное или внедрённое значение в { $arguments } заставит `{ $tool }` сервера { $server } изменить не то, что нужно, а цикл повторит ошибку.
hazard-write-without-arguments = Вызванный не вовремя или в цикле, `{ $tool }` сервера { $server } изменит то, что должно было остаться.
hazard-execute = `{ $tool }` сервера { $server } выполняет то, что { $count ->
        [1] содержит
       *[other] содержат
    } { $arguments }, с правами сервера: что выполнить, решит текст, который управляет агентом.
hazard-execute-without-arguments = Каждый вызов `{ $tool }` сервера { $server } запускает что-то с правами сервера.
hazard-destructive-declared = Сервер { $server } сам объявляет `{ $tool }` разрушающим: считайте неверное или внедрённое значение в { $arguments } потерей, которую не отменить.
hazard-destructive-declared-without-arguments = Сервер { $server } сам объявляет `{ $tool }` разрушающим: считайте каждый вызов потерей, которую не отменить.
hazard-destructive = `{ $tool }` сервера { $server } уничтожает то, что { $count ->
        [1] выбирает
       *[other] выбирают
    } { $arguments }; после неверного или внедрённого значения данные не вернуть.
hazard-destructive-without-arguments = `{ $tool }` сервера { $server } уничтожает данные, и у него нет аргумента, который могло бы проверить правило.
hazard-financial = `{ $tool }` сервера { $server } переводит деньги или создаёт обязательство платить, как { $count ->
        [1] указывает
       *[other] указывают
    } { $arguments }: неверный получатель или повторный вызов стоит денег.
hazard-financial-without-arguments = Каждый вызов `{ $tool }` сервера { $server } переводит деньги или создаёт обязательство платить.
hazard-other = Описание `{ $tool }` сервера { $server } не говорит, что происходит с { $arguments }; инструмент может делать больше, чем обещает имя.
hazard-other-without-arguments = Описание `{ $tool }` сервера { $server } не говорит, что он делает; инструмент может делать больше, чем обещает имя.
hazard-others = { $value } и другие
hazard-path-read = `{ $value }` может указать любой файл, доступный серверу, в том числе ключи.
hazard-path = `{ $value }` может указать файл вне нужной папки.
hazard-url = `{ $value }` может вести во внутреннюю сеть и сам нести данные.
hazard-amount = Сверху `{ $value }` ограничивает только политика.
hazard-code = `{ $value }` выполняется как есть.
hazard-query = `{ $value }` может запросить больше, чем нужно для задачи.
hazard-recipient = `{ $value }` может указать постороннего.
hazard-reads-private = Закрытые данные из ответа попадают в контекст агента.
hazard-ingests-untrusted = В ответе может быть чужой текст, который управляет агентом.
hazard-sends-out = Инструмент может вынести данные из организации.
hazard-asks = Сервер просит, чтобы сначала решил человек.

# Review and approval
quarantine-changed = Описание изменилось с тех пор, как его одобрили.
quarantine-not-approved = Это описание ещё никто не одобрил.
quarantine-hidden = В описании есть скрытый текст.
quarantine-new = Инструмент новый, опасного класса, и его ещё никто не одобрил.
quarantine-diff = Что изменилось
quarantine-no-before = Сравнить не с чем: прежнего описания нет. Полное описание — в конце страницы.
quarantine-risk = Класс риска:
quarantine-rejected = Отклонил { $value }. Инструмент остаётся в карантине, пока описание не одобрено.
quarantine-reject = Отклонить
undo-read = Вызов ничего не меняет.
undo-write = Обычно можно исправить следующим вызовом.
undo-execute = Неизвестно: выполняется код или команда.
undo-destructive = Нет: что-то удаляется или завершается.
undo-financial = Нет: движутся деньги.
undo-other = Неизвестно.
approval-undo = Можно ли отменить?
approval-who = Кто может ответить
approval-any-approver = любой подтверждающий
approval-groups = из групп: { $value }
approval-expires = Истекает
approval-after = Счётчики после подтверждения
approval-no-limits = Вызов не расходует счётчики. Ограничить такие вызовы можно лимитом в политике.
approval-spent = исчерпан: вызов будет отклонён
approval-differs = В сравнении с последним подтверждённым вызовом
approval-differs-same = Аргументы те же.
approval-first = Похожих вызовов ещё не подтверждали. Проверьте каждый аргумент.
approval-added = Новые аргументы
approval-removed = Нет аргументов
approval-changed = Другие значения
approval-recent = Недавние вызовы этого доступа
approval-answers = Ответы
approval-said-approve = подтверждено
approval-said-deny = отклонено
approval-note = Примечание политики
approval-similar = Пропускать и похожие вызовы
approval-similar-no = нет, только этот вызов
approval-similar-15m = 15 минут
approval-similar-1h = 1 час
approval-similar-8h = 8 часов
approval-keep = Аргументы, которые должны совпадать (не выбрано: все)
approval-look = Открыть
standing-title = Действующие исключения
standing-what = Похожие вызовы проходят без вопроса, пока исключение действует.
standing-keep = Совпадают аргументы
standing-end = Завершить
done-standing-ended = Исключение завершено: такие вызовы снова ждут человека.
done-definition-rejected = Описание «{ $value }» отклонено. Оно остаётся в карантине.

# Shadow
policy-to-paste = Что изменить в файле
policy-to-paste-what = Политика хранится в файле. Отличаются эти строки:
policy-applied = В черновике ниже — рекомендуемое правило для { $value }. Посмотрите, что изменится, и сохраните.
shadow-title = Теневой режим: пока ничего не отклоняется
shadow-what = Эти вызовы прошли. В боевом режиме политика отклонила бы их или задержала.
shadow-since = с
shadow-nothing = Ни один вызов не был бы отклонён или задержан. Политику можно включать.
shadow-cut = Записей больше; учтены 1000 новейших по каждому решению.
shadow-enforce = Включить политику
shadow-not-edited = документ нельзя изменить автоматически; удалите `mode: shadow` в документе
done-enforced = Политика «{ $value }» включена.

# Trifecta
trifecta-yes = Смертельная тройка: агент читает закрытые данные, получает чужой текст и может отправлять данные наружу.
trifecta-no = Смертельной тройки нет.
trifecta-how = Уберите одно из трёх или спрашивайте человека, прежде чем данные уйдут.
grants-most-limits = Лимиты

# Servers and catalogue
servers-offers = Его инструменты
servers-offers-none = Инструментов нет. Проверьте команду или отмените добавление.
servers-no-answer = Сервер не ответил, инструменты неизвестны: { $value }
servers-hidden = скрытый текст
servers-ran = toolgate запустил это один раз, чтобы получить список инструментов, и завершил:
servers-log = Последние строки stderr
servers-pin = Новые и изменённые описания
servers-pin-first = first: изменённое ждёт человека
servers-pin-strict = strict: каждое ждёт человека
servers-pin-off = off: изменения только записываются
field-pin = Закрепление
field-labels = Данные
catalog-servers = Серверы каталога
catalog-policy = Рекомендуемая политика
catalog-scanned = проверен { $value }

# Search and diagnosis
why-base = Имя базы или идентификатор сеанса
why-any-grant = Для любого агента
why-check = Проверить
why-all = Все причины
why-events = Последние сообщения о сеансах:
why-not-connected = Программа с базой «{ $value }» не подключена. Сравните адрес в её настройках с адресом выше и запустите её.
why-conflict = «{ $value }»: две программы с одним идентификатором сеанса. Задайте каждой свой client_uid.
why-connected = «{ $value }»: подключена.
why-disconnected = «{ $value }»: была подключена и отключилась. Появится снова, когда программа подключится.
why-no-tools = «{ $value }»: не публикует инструментов. Проверьте расширение.
why-frozen = «{ $value }»: заморожена. Снимите заморозку.
why-expired = Срок доступа «{ $value }» истёк. Создайте новый.
why-reached = База «{ $value }» входит в доступ.
why-not-reached = База «{ $value }» не входит в доступ: измените его «Сеансы».
why-no-policy = У доступа «{ $value }» нет политики, поэтому всё запрещено. Назначьте её.
why-nothing-in-reach = Ни один инструмент сеансов не входит в доступ «{ $value }».
audit-search = Текст в строке: имя, номер, сообщение
age-any = За всё время
age-15m = За 15 минут
age-1h = За час
age-24h = За сутки
age-7d = За 7 дней

# With numbers
count-tools =
    { $n ->
        [one] { $n } инструмент
        [few] { $n } инструмента
        [many] { $n } инструментов
       *[other] { $n } инструмента
    }
count-running =
    { $n ->
        [one] { $n } процесс или соединение
        [few] { $n } процесса или соединения
        [many] { $n } процессов или соединений
       *[other] { $n } процесса или соединения
    }
span-days =
    { $n ->
        [one] { $n } день
        [few] { $n } дня
        [many] { $n } дней
       *[other] { $n } дня
    }
banner-pending =
    { $n ->
        [one] { $n } вызов ждёт человека.
        [few] { $n } вызова ждут человека.
        [many] { $n } вызовов ждут человека.
       *[other] { $n } вызова ждут человека.
    }
banner-more =
    { $n ->
        [one] Ещё { $n } дело требует человека.
        [few] Ещё { $n } дела требуют человека.
        [many] Ещё { $n } дел требуют человека.
       *[other] Ещё { $n } дела требуют человека.
    }
login-wait =
    { $n ->
        [one] Слишком много неверных токенов с этого адреса. Подождите { $n } секунду.
        [few] Слишком много неверных токенов с этого адреса. Подождите { $n } секунды.
        [many] Слишком много неверных токенов с этого адреса. Подождите { $n } секунд.
       *[other] Слишком много неверных токенов с этого адреса. Подождите { $n } секунды.
    }
tool-hidden =
    { $n ->
        [one] В описании { $n } место, которое человек не видит или спутает.
        [few] В описании { $n } места, которые человек не видит или спутает.
        [many] В описании { $n } мест, которые человек не видит или спутает.
       *[other] В описании { $n } места, которые человек не видит или спутает.
    }
draft-no-change =
    { $n ->
        [one] Решения не меняются: сравнено { $n } решение.
        [few] Решения не меняются: сравнено { $n } решения.
        [many] Решения не меняются: сравнено { $n } решений.
       *[other] Решения не меняются: сравнено { $n } решения.
    }
say-limit =
    { $n ->
        [one] не больше { $n } раза { $window }
        [few] не больше { $n } раз { $window }
        [many] не больше { $n } раз { $window }
       *[other] не больше { $n } раза { $window }
    }
say-approve =
    { $n ->
        [one] каждый вызов подтверждает человек
        [few] каждый вызов подтверждают { $n } человека
        [many] каждый вызов подтверждают { $n } человек
       *[other] каждый вызов подтверждают { $n } человека
    }
approval-people =
    { $n ->
        [one] { $n } человек, { $value }
        [few] { $n } разных человека, { $value }
       *[many] { $n } разных человек, { $value }
    }
banner-quarantined =
    { $n ->
        [one] { $n } инструмент в карантине, пока человек не одобрит его описание.
        [few] { $n } инструмента в карантине, пока человек не одобрит их описания.
        [many] { $n } инструментов в карантине, пока человек не одобрит их описания.
       *[other] { $n } инструмента в карантине, пока человек не одобрит их описания.
    }
draft-more =
    { $n ->
        [one] Ещё { $n } не показано.
        [few] Ещё { $n } не показаны.
       *[other] Ещё { $n } не показаны.
    }
why-anonymous =
    { $n ->
        [one] { $n } программа подключена и не зарегистрировалась: обновите её расширение.
        [few] { $n } программы подключены и не зарегистрировались: обновите их расширение.
       *[other] { $n } программ подключены и не зарегистрировались: обновите их расширение.
    }
why-all-denied =
    { $n ->
        [one] Политика запрещает или скрывает { $n } инструмент сеансов.
        [few] Политика запрещает или скрывает все { $n } инструмента сеансов.
       *[other] Политика запрещает или скрывает все { $n } инструментов сеансов.
    }
why-some-allowed =
    { $n ->
        [one] Политика разрешает { $n } инструмент сеансов.
        [few] Политика разрешает { $n } инструмента сеансов.
       *[other] Политика разрешает { $n } инструментов сеансов.
    }
audit-searched =
    { $n ->
        [one] Просмотрена { $n } строка.
        [few] Просмотрены последние { $n } строки; «Более старые» ищет дальше.
       *[other] Просмотрены последние { $n } строк; «Более старые» ищет дальше.
    }
